package form

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// PublicForm is the public view of a form.
type PublicForm struct {
	UUID        uuid.UUID     `json:"uuid" format:"uuid"`
	Name        string        `json:"name"`
	Description *string       `json:"description" nullable:"true"`
	IsOpen      bool          `json:"isOpen" doc:"Whether the form currently accepts responses."`
	OpensAt     *time.Time    `json:"opensAt" nullable:"true"`
	ClosesAt    *time.Time    `json:"closesAt" nullable:"true"`
	Honeypot    *string       `json:"honeypot" nullable:"true" doc:"Name of an input to hide from users and submit empty."`
	Version     int           `json:"version"`
	Fields      []PublicField `json:"fields"`
}

// PublicField is the public view of a field.
type PublicField struct {
	UUID uuid.UUID `json:"uuid" format:"uuid"`
	Name *string   `json:"name" nullable:"true" doc:"Name of the field in answers, beside its UUID."`
	Definition
}

// Receipt acknowledges a response to its submitter.
type Receipt struct {
	UUID           uuid.UUID  `json:"uuid" format:"uuid"`
	FormUUID       uuid.UUID  `json:"formUuid" format:"uuid"`
	State          string     `json:"state" enum:"partial,complete"`
	SubmittedAt    *time.Time `json:"submittedAt" nullable:"true" doc:"Time of completion."`
	ExpiresAt      *time.Time `json:"expiresAt" nullable:"true" doc:"When a partial response expires."`
	SuccessMessage *string    `json:"successMessage" nullable:"true" doc:"For a complete response."`
	Notify         bool       `json:"-"` // a mail about it is due, see Notifier
}

// PartialTTL is a partial response's lifetime after the last change.
const PartialTTL = 7 * 24 * time.Hour

// GetPublicForm returns a form's public view. It fails with NotFound if the form does not exist, or
// does not accept responses and the caller is not a member.
func GetPublicForm(ctx context.Context, p *projectdb.Project, id uuid.UUID, member bool) (PublicForm, error) {
	f, err := GetFullForm(ctx, p, id)
	if err != nil {
		return PublicForm{}, err
	}

	reason := f.closedReason(time.Now())
	if reason != nil && !member {
		reason.Kind = fault.NotFound
		return PublicForm{}, reason
	}

	public := PublicForm{UUID: f.UUID, Name: f.Name, Description: f.Description, IsOpen: reason == nil,
		OpensAt: f.OpensAt, ClosesAt: f.ClosesAt,
		Honeypot: f.Honeypot, Version: f.Version, Fields: make([]PublicField, len(f.Fields))}

	for i, field := range f.Fields {
		public.Fields[i] = PublicField{field.UUID, field.Name, field.Definition}
	}

	return public, nil
}

// closedReason returns the reason why the form does not accept responses at a time, or nil.
func (f Form) closedReason(now time.Time) *fault.Error {
	switch {
	case f.State != "open":
		return fault.New(fault.Conflict, "the form is not open").WithCode("form_closed")
	case f.OpensAt != nil && now.Before(*f.OpensAt):
		return fault.New(fault.Conflict, "the form is not open yet").WithCode("form_closed")
	case f.ClosesAt != nil && !now.Before(*f.ClosesAt):
		return fault.New(fault.Conflict, "the form is no longer open").WithCode("form_closed")
	case f.MaxResponses != nil && f.TotalResponses >= *f.MaxResponses:
		return fault.New(fault.Conflict, "the form has reached its maximum number of responses").WithCode("form_full")
	}

	return nil
}

// Attachments holds a response's uploaded files. The zero value has none.
type Attachments struct {
	Fields map[uuid.UUID]bool // fields with a file
	// creates the files in the response's transaction; nil without files
	Create func(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]FileAnswer, error)
}

// FileAnswer is the answer to a file field.
type FileAnswer struct {
	FileUUID      uuid.UUID `json:"fileUuid"`
	ContainerUUID uuid.UUID `json:"containerUuid"`
	FullFileName  string    `json:"fullFileName"`
	MimeType      string    `json:"mimeType"`
	Size          int64     `json:"size"`
}

// FileFields describes where a response's files go.
type FileFields struct {
	Container *uuid.UUID           // nil: the form accepts no files
	fields    map[string]uuid.UUID // file fields, by UUID and by name
	count     int
}

// Count returns the number of file fields.
func (f FileFields) Count() int { return f.count }

// Find returns the file field with name as UUID or name.
func (f FileFields) Find(name string) (field uuid.UUID, ok bool) {
	field, ok = f.fields[name]
	return field, ok
}

// GetFileFields returns the file fields in a form. It fails with NotFound if the form does not
// exist, and with Conflict if it does not accept responses.
func GetFileFields(ctx context.Context, p *projectdb.Project, id uuid.UUID) (FileFields, error) {
	f, err := GetFullForm(ctx, p, id)
	if err != nil {
		return FileFields{}, err
	}

	if reason := f.closedReason(time.Now()); reason != nil {
		return FileFields{}, reason
	}

	destination := FileFields{Container: f.ContainerUUID, fields: map[string]uuid.UUID{}}
	for _, field := range f.Fields {
		if field.Type != "file" {
			continue
		}

		destination.fields[field.UUID.String()] = field.UUID
		destination.count++
		if field.Name != nil {
			destination.fields[*field.Name] = field.UUID
		}
	}

	return destination, nil
}

// submission is a response being submitted.
type submission struct {
	project *projectdb.Project
	form    uuid.UUID
	id      uuid.UUID
	answers Answers
	files   Attachments
}

// ErrRepeated is the failure for a response that is already stored, with the same UUID and answers.
var ErrRepeated = errors.New("form: the response is already stored")

// CreateResponse stores a complete response with the given UUID. cache may have the form's fields.
// A response with a filled honeypot is acknowledged but not stored.
//
// It fails with NotFound if the form does not exist, with Conflict if the form is not open or is
// full, and with Unprocessable on every invalid answer. Concurrent responses never exceed the
// form's maximum. For a UUID that is taken it fails with [ErrRepeated], or with Conflict, code
// already_sent, if the answers differ from the stored ones.
func CreateResponse(
	ctx context.Context, p *projectdb.Project, cache FieldCache, form, id uuid.UUID, answers Answers,
	files Attachments,
) (Receipt, error) {
	s := submission{p, form, id, answers, files}
	audit.CreatedUUID(ctx, id)

	if d, ok := cache.forms.Get(form); ok {
		if receipt, isDone, err := s.createAtOnce(ctx, d); isDone {
			return receipt, err
		}
	}

	// Validate without the form's lock first, so that invalid responses block no others.
	d, err := s.loadFields(ctx, p.Trusted())
	if err != nil {
		return Receipt{}, err
	}

	cache.put(form, d)

	isBlocked := d.takeHoneypot(answers)
	valid, err := s.validate(ctx, d, isBlocked)
	if err != nil {
		return Receipt{}, err
	}

	var receipt Receipt
	err = p.InTx(ctx, func(tx pgx.Tx) error {
		f, err := s.countResponse(ctx, tx, isBlocked)
		if err == nil || fault.Is(err, fault.Conflict) { // a form is full by the response that is repeated
			err = cmp.Or(s.checkUnsent(ctx, tx, valid), err)
		}
		if err != nil {
			return err
		}

		if receipt = s.receipt(f, isBlocked); isBlocked {
			return nil
		}

		if f.Version != d.version { // the fields changed since they were read
			if d, err = s.loadFields(ctx, tx); err != nil {
				return err
			}
			if valid, err = d.validate(ctx, answers, files.Fields); err != nil {
				return err
			}
		}

		if files.Create != nil {
			if err := s.attachFiles(ctx, tx, valid); err != nil {
				return err
			}
		}

		return s.insert(ctx, tx, valid, f)
	})

	return receipt, err
}

// checkUnsent fails if the response's UUID is taken. No other request can take it meanwhile, since
// countResponse has locked the form's row. It ignores files, whose UUIDs differ each time.
func (s submission) checkUnsent(ctx context.Context, tx pgx.Tx, answers Answers) error {
	files := make([]string, 0, len(s.files.Fields))
	for id := range s.files.Fields {
		files = append(files, id.String())
	}

	same, err := pg.Value[bool](ctx, tx, `
		select form_uuid = @form and state = 'complete'
			and answers - @files::text[] = @answers::jsonb - @files::text[]
			and answers ?& @files::text[]
		from forms.responses where uuid = @id`,
		pgx.StrictNamedArgs{"id": s.id, "form": s.form, "files": files, "answers": answers.encode()})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case same:
		return ErrRepeated
	}

	return fault.New(fault.Conflict, "the form was already sent from this page with other answers; "+
		"send it again to store another response").WithCode("already_sent")
}

// receipt returns the response's receipt. isBlocked means that it was not stored.
func (s submission) receipt(f countedForm, isBlocked bool) Receipt {
	return Receipt{
		UUID:           s.id,
		FormUUID:       s.form,
		State:          "complete",
		SubmittedAt:    &f.Now,
		SuccessMessage: f.SuccessMessage,
		Notify:         f.Notify && !isBlocked,
	}
}

// validate validates the answers and returns them in stored form. A closed form takes precedence
// over invalid answers.
func (s submission) validate(ctx context.Context, d fieldSet, isBlocked bool) (Answers, error) {
	if isBlocked {
		return nil, nil
	}

	valid, invalid := d.validate(ctx, s.answers, s.files.Fields)
	if invalid == nil {
		return valid, nil
	}

	return nil, s.closedReasonOr(ctx, invalid)
}

// closedReasonOr returns the reason why the form does not accept responses, or else invalid.
func (s submission) closedReasonOr(ctx context.Context, invalid error) error {
	f, err := GetForm(ctx, s.project, s.form)
	if err != nil {
		return err
	}

	if reason := f.closedReason(time.Now()); reason != nil {
		return reason
	}

	return invalid
}

// loadFields reads the current fields.
func (s submission) loadFields(ctx context.Context, q pg.Querier) (fieldSet, error) {
	// One statement reads version and fields, so that they match despite concurrent changes.
	rows, err := pg.One[struct {
		Version  int
		FrozenAt *time.Time
		Honeypot *string
		Notifies bool
		Fields   []storedField
	}](ctx, q, `
		select f.version, d.created_at as frozen_at, f.honeypot, f.notify_emails <> '{}' as notifies, coalesce((
			select jsonb_agg(to_jsonb(q) - 'form_uuid' - 'created_at' - 'updated_at' order by q.position)
			from forms.fields q where q.form_uuid = f.uuid), '[]') as fields
		from forms.forms f
		left join forms.definitions d on d.form_uuid = f.uuid and d.version = f.version
		where f.uuid = @form`, pgx.StrictNamedArgs{"form": s.form})

	d := fieldSet{version: rows.Version, frozenAt: rows.FrozenAt, honeypot: rows.Honeypot, notifies: rows.Notifies}
	for _, f := range rows.Fields {
		d.fields = append(d.fields, f.field(s.form))
	}

	return d, err
}

// storedField is a field as stored in forms.definitions.
type storedField struct {
	UUID         uuid.UUID       `json:"uuid"`
	Label        string          `json:"label"`
	Name         *string         `json:"name"`
	Type         string          `json:"type"`
	Description  *string         `json:"description"`
	IsRequired   bool            `json:"is_required"`
	DefaultValue *string         `json:"default_value"`
	Options      json.RawMessage `json:"options"`
	Pattern      *string         `json:"pattern"`
	MinLength    *int64          `json:"min_length"`
	MaxLength    *int64          `json:"max_length"`
	MinValue     *int64          `json:"min_value"`
	MaxValue     *int64          `json:"max_value"`
	DateFormat   *string         `json:"date_format"`
	StartDate    *string         `json:"start_date"`
	EndDate      *string         `json:"end_date"`
}

func (s storedField) field(form uuid.UUID) Field {
	f := Field{UUID: s.UUID, FormUUID: form, Definition: Definition{Label: s.Label, Name: s.Name,
		Type: s.Type, Description: s.Description, IsRequired: s.IsRequired,
		DefaultValue: s.DefaultValue, Pattern: s.Pattern, MinLength: s.MinLength, MaxLength: s.MaxLength,
		MinValue: s.MinValue, MaxValue: s.MaxValue,
		DateFormat: s.DateFormat, StartDate: s.StartDate, EndDate: s.EndDate}}

	if len(s.Options) > 0 && string(s.Options) != "null" {
		options := string(s.Options)
		f.Options = &options
	}

	return f
}

// countedForm is a form's state after a response was counted.
type countedForm struct {
	Version        int
	SuccessMessage *string
	Notify         bool // it has addresses to notify
	Now            time.Time
}

const (
	// accepting is an SQL condition: the form accepts a response.
	accepting = `
		and state = 'open' and (opens_at is null or opens_at <= clock_timestamp())
		and (closes_at is null or closes_at > clock_timestamp())
		and (max_responses is null or total_responses < max_responses)`

	countedColumns = `
		returning version, success_message, notify_emails <> '{}' as notify, clock_timestamp() as now`
)

// countResponse counts the response if the form accepts it, and locks the form's row until the
// transaction ends. It reads the clock after acquiring the lock, so that waiting does not carry a
// response past the closing time.
func (s submission) countResponse(ctx context.Context, tx pgx.Tx, isBlocked bool) (countedForm, error) {
	form, err := pg.One[countedForm](ctx, tx, `
		update forms.forms
		set total_responses = total_responses + case when @blocked then 0 else 1 end,
		    blocked_responses = blocked_responses + case when @blocked then 1 else 0 end
		where uuid = @form`+accepting+countedColumns,
		pgx.StrictNamedArgs{"form": s.form, "blocked": isBlocked})
	if !fault.Is(err, fault.NotFound) {
		return form, err
	}

	f, err := getForm(ctx, tx, s.project, s.form)
	if err != nil {
		return countedForm{}, err
	}

	if reason := f.closedReason(time.Now()); reason != nil {
		return countedForm{}, reason
	}

	// It was closed a moment ago.
	return countedForm{}, fault.New(fault.Conflict, "the form is not open").WithCode("form_closed")
}

// attachFiles creates the files and adds them to the answers.
func (s submission) attachFiles(ctx context.Context, tx pgx.Tx, answers Answers) error {
	files, err := s.files.Create(ctx, tx)
	if err != nil {
		return err
	}

	for field, file := range files {
		text, err := json.Marshal(file)
		if err != nil {
			return err
		}

		answers[field.String()] = text
	}

	return nil
}

// storeVersion stores the form's current fields under their current version.
func (s submission) storeVersion(ctx context.Context, tx pgx.Tx) (version int, err error) {
	return pg.Value[int](ctx, tx, `
		with current as (
			select f.uuid, f.version, coalesce((
				select jsonb_agg(to_jsonb(q) - 'form_uuid' - 'created_at' - 'updated_at' order by q.position)
				from forms.fields q where q.form_uuid = f.uuid), '[]') as fields
			from forms.forms f where f.uuid = @form
		), frozen as (
			insert into forms.definitions (form_uuid, version, fields) select uuid, version, fields from current
			on conflict (form_uuid, version) do nothing
		)
		select version from current`, pgx.StrictNamedArgs{"form": s.form})
}

func (s submission) insert(ctx context.Context, tx pgx.Tx, answers Answers, f countedForm) error {
	version, err := s.storeVersion(ctx, tx)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `
		insert into forms.responses (uuid, form_uuid, version, state, answers, created_at, updated_at, submitted_at)
		values (@id, @form, @version, 'complete', @answers, @now, @now, @now)`,
		pgx.StrictNamedArgs{"id": s.id, "form": s.form, "version": version, "answers": answers.encode(), "now": f.Now})
	if err != nil {
		return err
	}

	return s.noteNotification(ctx, tx, f)
}

// noteNotification records that a mail about the response is due, if the form has addresses.
func (s submission) noteNotification(ctx context.Context, tx pgx.Tx, f countedForm) error {
	if !f.Notify {
		return nil
	}

	_, err := pg.Exec(ctx, tx, `insert into forms.notifications (response_uuid, form_uuid) values (@id, @form)`,
		pgx.StrictNamedArgs{"id": s.id, "form": s.form})
	return err
}

// encode encodes the answers as a JSON object.
func (a Answers) encode() json.RawMessage {
	values := make(map[string]json.RawMessage, len(a))
	for name, v := range a {
		values[name] = json.RawMessage(v)
	}

	text, err := json.Marshal(values)
	if err != nil {
		panic("form: answers: " + err.Error()) // decoded from JSON before
	}

	return text
}

// newToken returns a secret token and the token's hash.
func newToken() (token string, hash []byte) {
	token = rand.Text()
	return token, hashToken(token)
}

func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}
