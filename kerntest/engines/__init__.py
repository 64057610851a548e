"""Where blocks are computed."""
