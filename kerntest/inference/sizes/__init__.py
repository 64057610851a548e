"""How large a difference is: bounds and intervals, margins, and the shift that a test would have found."""
