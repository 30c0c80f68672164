"""What goes wrong with demo models that are downloaded."""


class DemoModelError(RuntimeError):
    """A demonstration model could not be fetched or verified; the message says why and what to do."""
