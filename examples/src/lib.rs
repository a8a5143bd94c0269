//! Examples of the tidegate library, one file each beside this folder.
