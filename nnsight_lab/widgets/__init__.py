"""The Lab: the annotated `forward` as a page, and what a click on it does."""
