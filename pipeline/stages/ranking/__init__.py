"""Rankings of documents with judged relevance: measures of every query, beside random selection."""
