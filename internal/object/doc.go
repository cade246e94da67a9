// Package object owns a project's containers and files: names, size limits, media types, quotas,
// uploads, and variants of pictures. The bytes of a file are a blob of their own, stored by package
// blob under a key that reveals nothing about the file. The project's database maps files to blobs.
//
// # Actors
//
// An [actor.Actor] reads and writes: a member of the project, to whom no policy applies, or a
// caller of its application, who knows a container as a bucket and a file as an object. Policies of
// the project decide about an end user. A change asks them by a change of storage.buckets or
// storage.objects, which always fails, and is then made by the platform's login in the version that
// they have decided about.
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
// deletes the blobs of old records.
//
// # Uploads of parts
//
// A [Resumable] receives its parts in order, a [Multipart] numbered ones in any order. Each part is
// a blob of its own:
//
//	created ──part──▶ in progress ──last part──▶ complete ──copy to one blob──▶ has a file
//	   │                  │                          │
//	   └──────────────────┴── deleted or expired ────┘
//
// The copy is an upload; its file and the end of the upload of parts commit together. If it fails,
// the upload of parts stays complete, and the next request for it tries again.
//
// # Deletion
//
// A transaction that deletes or replaces a file records the blob in storage.discarded. [Discard]
// removes the bytes afterwards, so that no file loses them before it is gone.
package object
