package files

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerFiles(p *operation.Pipeline) {
	operation.HandleInProject(p, listFiles, s.listFiles, nil)
	operation.HandleInProject(p, createFile, s.createFile, nil)
	operation.HandleInProject(p, downloadFile, s.downloadFile, nil)
	operation.HandleInProject(p, readFile, s.readFile, nil)
	operation.HandleInProject(p, writeFile, s.writeFile, nil)
	p.HandlePreflight(readFile.Path, "GET, HEAD, PUT")
	operation.HandleInProject(p, getFile, s.getFile, nil)
	operation.HandleInProject(p, updateFile, s.updateFile, s.findFile)
	operation.HandleInProject(p, deleteFile, s.deleteFile, nil)
	operation.HandleInProject(p, deleteFolder, s.deleteFolder, nil)
}

var listFiles = operation.Operation{
	ID: "listFiles", Method: "GET", Path: "/containers/{containerUUID}/files", Summary: "List a container's files",
	Access: operation.Project(account.Viewer), Specified: true, Errors: operation.SpecifiedErrors, Wrapped: true,
}

type listFilesInput struct {
	operation.PageQuery
	Sort      string    `query:"sort" enum:"fullFileName,size,mimeType,createdAt,updatedAt" default:"createdAt"`
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
}

func (s *Server) listFiles(
	ctx context.Context, p *projectdb.Project, in *listFilesInput,
) (operation.Answer[[]object.File, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	files, total, err := object.ListFiles(ctx, p, in.Container, page)
	return operation.ListOf(files, page, total), err
}

var createFile = operation.Operation{
	ID: "createFile", Method: "POST", Path: "/containers/{containerUUID}/files", Summary: "Upload a file",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 413, 422, 500},
	Body: operation.MultipartFile,
	Notes: "A multipart body: an optional `full_file_name`, which may contain folders, followed by `file`. Default " +
		"of `full_file_name`: the file name in the part.",
}

type createFileInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	operation.Upload
}

func (s *Server) createFile(ctx context.Context, p *projectdb.Project, in *createFileInput) (fileAnswer, error) {
	name, mimeType, err := in.Open()
	if err != nil {
		return fileAnswer{}, err
	}

	maxBytes, err := s.Platform.MaxUploadSize(ctx)
	if err != nil {
		return fileAnswer{}, err
	}

	f, _, err := object.CreateFile(ctx, p, s.Blobs, member(ctx), object.ContainerRef{UUID: in.Container},
		object.NewFile{FullFileName: name, MimeType: mimeType, Content: in, Most: maxBytes})
	return answerFile(f, err)
}

var downloadFile = operation.Operation{
	ID: "downloadFile", Method: "GET",
	Path: "/containers/{containerUUID}/files/{fileUUID}/download", Summary: "Download a file",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 422, 429, 500}, Ranges: true,
	Notes: "Returns all bytes or a range of them. " +
		picturesNote,
}

type downloadFileInput struct {
	PictureQuery
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
}

func (s *Server) downloadFile(ctx context.Context, p *projectdb.Project, in *downloadFileInput) (download, error) {
	return s.openFile(ctx, p, object.FileRef{Container: in.Container, UUID: in.File}, in.PictureQuery)
}

var readFile = operation.Operation{
	ID: "readFile", Method: "GET",
	Path: "/files/{projectUUID}/{containerUUID}/{fullFileName...}", Summary: "Read a file by name",
	Access: operation.PublicProject(account.Viewer).OrSigned(), Errors: []int{400, 401, 404, 422, 429, 500},
	Ranges: true, IgnoreUnknownQuery: true,
	Notes: "The URL is the container's `url` followed by the file's full name. Public containers need no token. " +
		picturesNote +
		" Unknown query parameters are ignored.",
}

type readFileInput struct {
	PictureQuery
	Project   uuid.UUID `path:"projectUUID" format:"uuid"`
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Name      string    `path:"fullFileName"`
}

func (s *Server) readFile(ctx context.Context, p *projectdb.Project, in *readFileInput) (download, error) {
	if terms := urlTermsOf(ctx); terms != nil {
		q, err := in.PictureQuery.restrictTo(terms)
		if err != nil {
			return download{}, err
		}

		return s.openFile(ctx, p, object.FileRef{Container: in.Container, UUID: terms.File}, q)
	}

	return s.openFile(ctx, p, object.FileRef{Container: in.Container, Name: in.Name,
		OnlyPublic: !operation.Caller(ctx).Role.AtLeast(account.Viewer)}, in.PictureQuery)
}

type fileInPath struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
}

func (in *fileInPath) ref() object.FileRef {
	return object.FileRef{Container: in.Container, UUID: in.File}
}

var getFile = operation.Operation{
	ID: "getFile", Method: "GET",
	Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Get a file's metadata",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getFile(ctx context.Context, p *projectdb.Project, in *fileInPath) (fileAnswer, error) {
	f, err := object.GetFile(ctx, p, member(ctx), in.ref())
	return answerFile(f.File, err)
}

var updateFile = operation.Operation{
	ID: "updateFile", Method: "PUT",
	Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Rename or move a file",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "No bytes are copied, regardless of the file's size. The target container must accept the file's size " +
		"and type.",
	Example: `{"full_file_name": "2026/emma.jpg"}`,
}

type updateFileInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
	Body      struct {
		FullFileName  *string    `json:"full_file_name,omitempty" doc:"Full name, including folders."`
		ContainerUUID *uuid.UUID `json:"container_uuid,omitempty" format:"uuid" doc:"The container to move it to."`
		operation.ProjectInBody
	}
}

func (s *Server) findFile(ctx context.Context, p *projectdb.Project, in *updateFileInput) error {
	_, err := object.GetFile(ctx, p, member(ctx), object.FileRef{Container: in.Container, UUID: in.File})
	return err
}

func (s *Server) updateFile(ctx context.Context, p *projectdb.Project, in *updateFileInput) (object.File, error) {
	update := object.FileUpdate{FullFileName: in.Body.FullFileName}
	if in.Body.ContainerUUID != nil {
		update.Container = &object.ContainerRef{UUID: *in.Body.ContainerUUID}
	}

	return object.UpdateFile(ctx, p, member(ctx), object.FileRef{Container: in.Container, UUID: in.File}, update)
}

var deleteFile = operation.Operation{
	ID: "deleteFile", Method: "DELETE", Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Delete a file",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "The content is the deleted file.",
}

func (s *Server) deleteFile(ctx context.Context, p *projectdb.Project, in *fileInPath) (object.File, error) {
	f, err := object.DeleteFile(ctx, p, in.Container, in.File)
	if err == nil {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return f, err
}

var deleteFolder = operation.Operation{
	ID: "deleteFolder", Method: "DELETE",
	Path: "/containers/{containerUUID}/folders/{folder...}", Summary: "Delete a folder and its files",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Timeout: operation.LongTimeout, Destructive: operation.Always,
	Notes: "A folder is a prefix of file names that ends with a slash. Deletes all of its files or none; the bytes " +
		"are removed in the background.",
}

type deleteFolderInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Folder    string    `path:"folder"`
}

type deletedFolder struct {
	Folder string `json:"folder"`
	Files  int64  `json:"files" doc:"Number of deleted files."`
}

func (s *Server) deleteFolder(ctx context.Context, p *projectdb.Project, in *deleteFolderInput) (deletedFolder, error) {
	n, err := object.DeleteFolder(ctx, p, in.Container, in.Folder)
	if err == nil {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return deletedFolder{in.Folder, n}, err
}
