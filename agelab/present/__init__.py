"""What people read: terminal, Markdown, HTML, charts."""
