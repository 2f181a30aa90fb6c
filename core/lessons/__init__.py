"""What is shown instead of measured: demonstrations, made by the measuring process with the machine to itself."""
