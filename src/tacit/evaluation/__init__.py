"""Experiments, one for each paper: metrics, paired trials, plots, and the papers own figures beside ours."""
