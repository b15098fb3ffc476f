"""Pictures of what an evaluation found: one palette, one layout, PNG files or SVG for a page. Needs the extra `report`."""

from tacit.evaluation.pictures.picture import Panel, Picture, require_matplotlib

__all__ = ["Panel", "Picture", "require_matplotlib"]
