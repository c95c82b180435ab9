from derand.model import *  # noqa: F403
