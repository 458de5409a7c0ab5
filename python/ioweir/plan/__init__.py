"""Plans before they are used: whether they can be carried out, and who would write or read what when."""
