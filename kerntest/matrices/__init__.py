"""What both wings need: kernel matrices, their factors and their eigenvalues."""
