"""One file per command; heavy imports happen inside their bodies."""
