# For the scripts here: `copy_tree TREE FOLDER` makes the folder, with what a fresh clone holds: a build in place leaves Cython's C, headers
# and extensions in a tree, a build of a distribution its metadata.
copy_tree() {
  mkdir "$2"
  tar -C "$1" --exclude=./.git --exclude=./build --exclude='./.venv*' --exclude='*.so' --exclude='*.egg-info' -cf - . | tar -C "$2" -xf -
  rm -rf "$2"/fastlayers/kernels/aot/{*.c,made}
}
