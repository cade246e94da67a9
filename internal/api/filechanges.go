package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerFileChanges() {
	within(s, getFile, s.getFile, nil)
	within(s, updateFile, s.updateFile, s.findFile)
	within(s, deleteFile, s.deleteFile, nil)
	within(s, deleteFolder, s.deleteFolder, nil)
}

type fileInPath struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
}

var getFile = Operation{
	ID: "getFile", Method: "GET",
	Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Get a file's description",
	Access: project(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getFile(ctx context.Context, p *tenant.Project, in *fileInPath) (fileAnswer, error) {
	return answerFile(object.GetFile(ctx, p, in.Container, in.File))
}

var updateFile = Operation{
	ID: "updateFile", Method: "PUT",
	Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Rename or move a file",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "No byte is copied, however large the file is. The container that it is moved to must take files of its size and type.",
}

type updateFileInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
	Body      struct {
		FullFileName  *string    `json:"full_file_name,omitempty" doc:"With the folders that it is in."`
		ContainerUUID *uuid.UUID `json:"container_uuid,omitempty" format:"uuid" doc:"The container to move it to."`
		ProjectInBody
	}
}

func (s *Server) findFile(ctx context.Context, p *tenant.Project, in *updateFileInput) error {
	_, err := object.GetFile(ctx, p, in.Container, in.File)
	return err
}

func (s *Server) updateFile(ctx context.Context, p *tenant.Project, in *updateFileInput) (object.File, error) {
	return object.UpdateFile(ctx, p, caller(ctx).User, in.Container, in.File,
		object.FileUpdate{FullFileName: in.Body.FullFileName, Container: in.Body.ContainerUUID})
}

var deleteFile = Operation{
	ID: "deleteFile", Method: "DELETE", Path: "/containers/{containerUUID}/files/{fileUUID}", Summary: "Delete a file",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "The content is the file as it was.",
}

func (s *Server) deleteFile(ctx context.Context, p *tenant.Project, in *fileInPath) (object.File, error) {
	f, err := object.DeleteFile(ctx, p, in.Container, in.File)
	if err == nil {
		s.jobs.Discard(ctx, p.UUID)
	}

	return f, err
}

var deleteFolder = Operation{
	ID: "deleteFolder", Method: "DELETE",
	Path: "/containers/{containerUUID}/folders/{folder...}", Summary: "Delete a folder with all files in it",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 500}, Timeout: lasting, Destructive: true,
	Notes: "A folder is what the names of files begin with, up to a slash. All files are deleted or none; the bytes are removed in the background.",
}

type deleteFolderInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Folder    string    `path:"folder"`
}

type deletedFolder struct {
	Folder string `json:"folder"`
	Files  int64  `json:"files" doc:"How many there were."`
}

func (s *Server) deleteFolder(ctx context.Context, p *tenant.Project, in *deleteFolderInput) (deletedFolder, error) {
	n, err := object.DeleteFolder(ctx, p, in.Container, in.Folder)
	if err == nil {
		s.jobs.Discard(ctx, p.UUID)
	}

	return deletedFolder{in.Folder, n}, err
}
