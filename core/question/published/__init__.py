"""What others published, as data: figures of tutorials, and threads of people whose GPU was not faster."""
