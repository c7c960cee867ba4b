"""Plans to exact integers in PostgreSQL, where the data lives."""
