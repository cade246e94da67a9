package s3api

import "strings"

// Programs mark an empty folder by an empty object whose key ends in a slash. No file has such a
// name, so the marker is a file in the folder, under the name that Supabase gives it.

const folderMarker = ".emptyFolderPlaceholder"

var errFullFolder = malformed("InvalidArgument", "An object whose key ends in a slash must be empty")

// isFolder reports whether a key is a marker's.
func isFolder(key string) bool { return strings.HasSuffix(key, "/") }

// fileName returns a key's file name.
func fileName(key string) string {
	if isFolder(key) {
		return key + folderMarker
	}
	return key
}

// keyOf returns a file's key in a list of keys with a prefix.
func keyOf(name, prefix string) string {
	if key, ok := strings.CutSuffix(name, folderMarker); ok && isFolder(key) && strings.HasPrefix(key, prefix) {
		return key
	}
	return name
}
