package backups

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerBackupArchives(p *operation.Pipeline) {
	operation.HandleInProject(p, downloadBackup, s.downloadBackup, s.findBackupToDownload)
	operation.HandleInProject(p, importBackup, s.importBackup, nil)
	operation.HandleInProject(p, getBackupRecipient, s.getBackupRecipient, nil)
}

var downloadBackup = operation.Operation{
	ID: "downloadBackup", Method: "POST", Path: "/backups/{backupUUID}/download", Summary: "Download a backup",
	Access: operation.Project(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500}, Success: http.StatusOK,
	Notes: "Returns one tar archive with the manifest, the dump and the files. Exactly one protection is required, " +
		"since backups are stored under a key of this install: `recipient`, an age public key (that of " +
		"getBackupRecipient on another install allows only that install to import the file); `passphrase`; or " +
		"`encryption` `none`, which exposes all data of the project. Encrypted archives are in the " +
		"[age](https://age-encryption.org) format. A truncated download cannot be imported.",
	Example: `{"passphrase": "correct horse battery"}`,
}

type downloadBackupInput struct {
	UUID uuid.UUID `path:"backupUUID" format:"uuid"`
	Body struct {
		Recipient  *string `json:"recipient,omitempty" minLength:"1" maxLength:"100"`
		Passphrase *string `json:"passphrase,omitempty" minLength:"12" maxLength:"200"`
		Encryption *string `json:"encryption,omitempty" enum:"none"`
	}
}

func (s *Server) findBackupToDownload(ctx context.Context, p *projectdb.Project, in *downloadBackupInput) error {
	_, err := s.Backups.Get(ctx, p.UUID, in.UUID)
	return err
}

func (s *Server) downloadBackup(
	ctx context.Context, p *projectdb.Project, in *downloadBackupInput,
) (operation.Stream, error) {
	var encryption archive.Encryption
	count := 0
	for _, option := range []struct {
		from, to *string
	}{
		{in.Body.Recipient, &encryption.Recipient}, {in.Body.Passphrase, &encryption.Passphrase},
		{in.Body.Encryption, new(string)},
	} {
		if option.from != nil {
			*option.to = *option.from
			count++
		}
	}

	if count != 1 {
		if err := s.findBackupToDownload(ctx, p, in); err != nil {
			return operation.Stream{}, err
		}

		return operation.Stream{}, fault.OnField(fault.Unprocessable, "encryption", "required",
			"is required unless recipient or passphrase is given; give exactly one of the three")
	}

	e, err := s.Backups.Export(ctx, p.UUID, in.UUID, encryption)
	if err != nil {
		return operation.Stream{}, err
	}

	return streamBackup(e, p.UUID), nil
}

// streamBackup returns the response with a project's backup as an archive.
func streamBackup(e *backup.Export, project uuid.UUID) operation.Stream {
	var size int64
	return operation.Stream{Errors: downloadBackup.Errors, Headers: func(h http.Header) {
		name := "socle-" + project.String() + "-" + e.At().UTC().Format("20060102T150405Z") + ".tar"
		if e.Encrypted() {
			name += ".age"
		}

		h.Set("Content-Type", "application/octet-stream")
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
		h.Set("Cache-Control", "no-store")
	}, Write: func(ctx context.Context, w io.Writer) error {
		return e.Write(ctx, w, func(n int64) { size = n })
	}, Close: e.Close}
}

var importBackup = operation.Operation{
	ID: "importBackup", Method: "POST", Path: "/backups/import", Summary: "Import a backup",
	Access: operation.Project(account.Admin), Errors: []int{400, 401, 403, 409, 413, 422, 500},
	Body: operation.RawFile,
	Notes: "The body is an archive from downloadBackup, of this install or another one. It becomes a completed " +
		"backup of the project and can be restored like any other: with the rights of the project's owner only. " +
		"Forms keep their UUIDs, except those that another project of this install has. The setting " +
		"`max_imported_backup` limits the size.",
}

type importBackupInput struct {
	Passphrase *string `header:"X-Passphrase" minLength:"1" maxLength:"200" doc:"Passphrase of the archive. Omit it if the archive is encrypted for this install or not encrypted."`
	operation.Upload
}

// importTimeout is the timeout for storing and checking a backup after the last byte has arrived.
const importTimeout = time.Hour

// importBody is a body that extends the connection's deadlines at the end, for the import.
type importBody struct{ *operation.Upload }

func (p importBody) Read(b []byte) (int, error) {
	n, err := p.Upload.Read(b)
	if err == io.EOF {
		if e := p.ExtendDeadlines(importTimeout); e != nil {
			return n, e
		}
	}

	return n, err
}

func (s *Server) importBackup(ctx context.Context, p *projectdb.Project, in *importBackupInput) (backupAnswer, error) {
	settings, err := s.Platform.Settings(ctx)
	if err != nil {
		return backupAnswer{}, err
	}

	n := backup.Import{Reader: importBody{&in.Upload}, MaxBytes: settings.MaxImportedBackup}
	if in.Passphrase != nil {
		n.Passphrase = *in.Passphrase
	}

	b, err := s.Backups.ImportArchive(ctx, p.UUID, operation.Caller(ctx).User, n)
	return answerBackup(b), err
}

var getBackupRecipient = operation.Operation{
	ID: "getBackupRecipient", Method: "GET",
	Path: "/backups/recipient", Summary: "Get the install's backup encryption key",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 500},
}

type backupRecipient struct {
	Recipient string `json:"recipient" doc:"An age public key, derived from the secret of the install."`
}

func (s *Server) getBackupRecipient(context.Context, *projectdb.Project, *struct{}) (backupRecipient, error) {
	key, err := s.Backups.Recipient()
	return backupRecipient{key}, err
}
