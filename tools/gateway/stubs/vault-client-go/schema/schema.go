// Package schema has the requests of the stub of Vault's client.
package schema

type AppRoleLoginRequest struct{ RoleId, SecretId string }

type KvV2WriteRequest struct{ Data, Options map[string]any }

type KvV2WriteMetadataRequest struct{ DeleteVersionAfter string }
