"""Tables of Delta Lake and Apache Iceberg as inputs: their own libraries say which files hold their rows."""
