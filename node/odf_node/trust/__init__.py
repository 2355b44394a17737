"""What data rest on: verification of what is held, audits, statements for others, evidence."""
