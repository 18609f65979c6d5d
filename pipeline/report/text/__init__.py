"""What is said of results as text, Markdown or LaTeX: the summary, and a paragraph for a methods section."""
