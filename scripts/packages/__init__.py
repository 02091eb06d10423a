"""What `make dist` is made of: compiling for an older C library, laying out, packing, checking."""
