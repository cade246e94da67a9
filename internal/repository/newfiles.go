package repository

import "strings"

// NewFile is a file in a new repository.
type NewFile struct{ Name, Text string }

// NewFiles returns a new repository's files, with the settings that most need a decision.
func (r *Repository) NewFiles() []NewFile {
	site := "http://localhost:3000"
	if r.Framework().Name == "vite" {
		site = "http://localhost:5173"
	}

	config := strings.NewReplacer("NAME", tomlValue(r.Name()), "SITE", tomlValue(site)).Replace(newConfig)
	return []NewFile{{ConfigFile, config}, {Folder + "/.gitignore", ".env\n.env.local\n"}}
}

const newConfig = `# Settings of the project, in the form of Supabase's tools. socle push applies what stands
# here; a setting without a line stays as it is.
project_id = NAME

[api]
schemas = ["public"]
# The most rows of a response.
max_rows = 1000
# Whether anon and authenticated have privileges on new tables. Row level security stays on, so
# policies decide.
auto_expose_new_tables = false

[auth]
# Where links in mails lead, and other addresses that sign-in may return to.
site_url = SITE
additional_redirect_urls = []
enable_signup = true
minimum_password_length = 8

[auth.email]
enable_confirmations = true

# Secrets stand in the environment, or in a file .env that is not committed.
# [auth.external.github]
# enabled = true
# client_id = "env(GITHUB_CLIENT_ID)"
# secret = "env(GITHUB_SECRET)"

# [storage.buckets.photos]
# public = true
# file_size_limit = "5MiB"
# allowed_mime_types = ["image/*"]
`
