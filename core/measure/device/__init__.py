"""The devices that PyTorch sees, what they can do, and their memory."""
