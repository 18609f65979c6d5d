"""Rankings of documents with judged relevance: measures of every query, beside those of random selection."""
