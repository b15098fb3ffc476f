"""All that crosses a boundary between parties: frozen, versioned, validated on arrival, carrying its guarantee."""
