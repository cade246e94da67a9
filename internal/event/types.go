package event

import "slices"

// Type is a type of events, as webhooks name it. Another meaning or form gets another version.
type Type struct {
	Name string
	Doc  string // when it happens
}

// Types of events about rows of tables that a webhook names.
const (
	RowInserted    = "socle.row.inserted.v1"
	RowUpdated     = "socle.row.updated.v1"
	RowDeleted     = "socle.row.deleted.v1"
	TableTruncated = "socle.table.truncated.v1"
)

// Types of events about a webhook itself, which it gets without asking.
const (
	WebhookGap  = "socle.webhook.gap.v1"
	WebhookTest = "socle.webhook.test.v1"
)

// Types of facts that the server writes, see [Write]. Triggers write the others, see migration 60.
const (
	BackupCompleted   = "socle.backup.completed.v1"
	BackupFailed      = "socle.backup.failed.v1"
	BackupProven      = "socle.backup.proven.v1"
	BackupProofFailed = "socle.backup.proof_failed.v1"
	QuotaNear         = "socle.quota.near.v1"
)

// QueueMessage is the type of events about messages of queues that a webhook names.
const QueueMessage = "socle.queue.message.v1"

// RowTypes, QueueTypes and WebhookTypes are the types of events other than facts.
var (
	QueueTypes = []Type{{QueueMessage, "A message was sent to a queue."}}
	RowTypes   = []Type{
		{RowInserted, "A row was inserted."},
		{RowUpdated, "A row was updated."},
		{RowDeleted, "A row was deleted."},
		{TableTruncated, "All rows of a table were removed by TRUNCATE."},
	}
	WebhookTypes = []Type{
		{WebhookGap, "Events may be missing before this one: they are no longer kept, or can't be read."},
		{WebhookTest, "A member has sent a test."},
	}
)

// Facts are the types of events that the platform writes into the log, if a webhook names them.
var Facts = []Type{
	{"socle.file.stored.v1", "A file was uploaded, or its bytes were replaced."},
	{"socle.file.moved.v1", "A file was renamed or moved."},
	{"socle.file.deleted.v1", "A file was deleted."},
	{"socle.form.submitted.v1", "A response to a form was completed."},
	{"socle.user.created.v1", "An end user was created."},
	{"socle.user.signed_in.v1", "An end user began a session."},
	{"socle.user.deleted.v1", "An end user was deleted."},
	{"socle.migration.applied.v1", "A migration of the project's schema was applied."},
	{BackupCompleted, "A backup was made."},
	{BackupFailed, "A backup failed."},
	{BackupProven, "A trial restore of a backup succeeded."},
	{BackupProofFailed, "A trial restore of a backup failed."},
	{QuotaNear, "The database has reached four fifths of its quota; once a day while that is so."},
}

// IsFact reports whether a name is one of [Facts].
func IsFact(name string) bool {
	return slices.ContainsFunc(Facts, func(t Type) bool { return t.Name == name })
}
