// Package object owns a project's containers and files: names, size limits, media types, quotas,
// uploads, and picture variants. Package blob stores each file's bytes as a separate blob, under a
// key that reveals nothing about the file. The project's database maps files to blobs.
//
// # Actors
//
// An [actor.Actor] reads and writes: a project member, to whom no policy applies, or an
// application's caller, who knows a container as a bucket and a file as an object. The project's
// policies decide about an end user. To ask them, a change first runs against storage.buckets or
// storage.objects, where it always fails. The platform's login then makes it, in the version they
// decided on.
//
// # Uploads
//
// An upload holds no connection while its bytes arrive:
//
//	begin     check name, rights, container and quota; record the blob in storage.uploads
//	receive   store the bytes
//	commit    ask the policies again; in one transaction check the container and the quota, insert
//	          the row or switch the blob, complete the ticket or the upload of parts, delete the
//	          record
//	cleanUp   after a failure: delete blob and record, unless the row exists
//
// A new file without a ticket or parts is committed by one statement. After a crash, [Sweep]
// deletes the blobs that old records name.
//
// # Multipart and resumable uploads
//
// A [Resumable] receives its parts in order, a [Multipart] numbered ones in any order. Each part is
// a separate blob:
//
//	created ──part──▶ in progress ──last part──▶ complete ──copy to one blob──▶ has a file
//	   │                  │                          │
//	   └──────────────────┴── deleted or expired ────┘
//
// The copy is an upload; its file and the end of the [Resumable] or [Multipart] commit together. If
// the copy fails, the parts stay complete, and the next request for them tries again.
//
// # Deletion
//
// A transaction that deletes or replaces a file records the blob in storage.discarded. [Discard]
// removes the bytes afterwards, so that no file loses them before it is gone.
package object
