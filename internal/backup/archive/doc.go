// Package archive owns the format of a backup: its parts, its encryption, and the file by which a
// backup moves between installs. It works on readers and writers alone. Package backup makes the
// parts, stores them, and knows which of them can be restored.
//
// # Parts
//
// A [Manifest] describes a backup in JSON and gives the [Digest] of all other parts. These are a
// dump of pg_dump in its custom format, and the contents of the project's files: each distinct
// [Content] once, in any order.
//
// # Formats
//
// A manifest has the oldest format that can express the backup. A release reads its own format and
// older ones, and rejects newer ones with [ErrNewer].
//
//	1  the first one
//	2  and extensions, and backups imported from another project
//	3  and a dumped database whose name does not derive from the project's UUID
//
// # Stored parts
//
// An install stores each part under a name that is package backup's, encrypted on its own in the
// age format. Its one recipient has the type "socle" and no arguments: the file key is sealed with
// the install's [Key]. The size of a part thus determines its encrypted size.
//
// # Archives
//
// An archive is a backup in one file: a tar with exactly these entries, all of them regular files,
// in this order.
//
//	manifest.json
//	database.dump
//	files/<SHA-256>  one per content, in the order of the manifest
//
// At most 64 KiB of padding follow. The manifest of an archive names the project whose logins the
// dump names, also if that is not the project it was exported from. The archive as a whole is
// plain, or encrypted in the age format for an X25519 recipient or with a passphrase. Each install
// has a recipient, see [Key.Recipient].
//
// An archive is untrusted: [NewReader] and [Reader.Each] bound everything it can make large.
//
// # Types of package projectdb
//
// Extensions and their changes are types of package projectdb, which reads them from a database and
// applies them to one. Their JSON is part of the format, and a test keeps it. Nothing here connects
// to a database.
package archive
