// Package archive owns the backup format: parts, encryption, and the file by which a backup moves
// between installs. It works on readers and writers alone. Package backup makes and stores the
// parts, and knows which can be restored.
//
// # Parts
//
// A [Manifest] describes a backup in JSON and gives each other part's [Digest]. These parts are a
// dump in pg_dump's custom format, and the project's file contents: each distinct [Content] once,
// in any order.
//
// # Formats
//
// A manifest has the oldest format that can express the backup. A release reads its current format
// and older ones, and rejects newer ones with [ErrNewer].
//
//	1  the first one
//	2  and extensions, and backups imported from another project
//	3  and a dumped database whose name does not derive from the project's UUID
//
// # Stored parts
//
// An install stores each part under a name that package backup chooses, encrypted separately in the
// age format. The only recipient has the type "socle" and no arguments: the file key is sealed with
// the install's [Key]. A part's size thus determines the encrypted size.
//
// # Archives
//
// An archive is a backup in one file: a tar with exactly these entries, all regular files, in this
// order.
//
//	manifest.json
//	database.dump
//	files/<SHA-256>  one per content, in the order of the manifest
//
// At most 64 KiB padding follow. An archive's manifest names the project whose logins the dump
// names, even if another project exported it. The archive as a whole is plain, or encrypted in the
// age format for an X25519 recipient or with a passphrase. Each install has a recipient, see
// [Key.Recipient].
//
// An archive is untrusted: [NewReader] and [Reader.Each] bound everything that it can make large.
//
// # Types from package projectdb
//
// The types for extensions and their changes belong to package projectdb, which reads them from a
// database and applies them to one. Their JSON is part of the format, and a test keeps it. Nothing
// here connects to a database.
package archive
