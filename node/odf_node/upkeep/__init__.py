"""Care for what is held: repair, scrub, and files of derivatives that can be computed again."""
