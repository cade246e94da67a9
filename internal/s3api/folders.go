package s3api

import "strings"

// Programs mark an empty folder by an empty object whose key ends in a slash. No file has such a
// name, so the marker is a file in the folder, under the name that Supabase gives it.

const folderMarker = ".emptyFolderPlaceholder"

var errFullFolder = malformed("InvalidArgument", "An object whose key ends in a slash must be empty")

// isFolder reports whether a key is that of a marker.
func isFolder(key string) bool { return strings.HasSuffix(key, "/") }

// fileName returns the name of the file with a key.
func fileName(key string) string {
	if isFolder(key) {
		return key + folderMarker
	}
	return key
}

// keyOf returns the key of a file in a list of the keys with a prefix.
func keyOf(name, prefix string) string {
	if key, ok := strings.CutSuffix(name, folderMarker); ok && isFolder(key) && strings.HasPrefix(key, prefix) {
		return key
	}
	return name
}
