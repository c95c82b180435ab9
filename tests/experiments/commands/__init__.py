"""Tests of the commands, as a user starts them."""
