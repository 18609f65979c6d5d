"""Inputs on S3, Google Cloud Storage and Azure: objects are listed, copied into a local folder, and read there."""
