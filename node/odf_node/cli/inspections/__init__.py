"""What ``odf-node inspect`` shows, by what is looked at; each takes the context and writes text or JSON."""
