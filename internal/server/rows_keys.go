package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/token"
)

const (
	keyCacheTTL     = 5 * time.Second // of API keys and project settings
	maxCacheEntries = 10_000          // keys and settings
	lookupTimeout   = 10 * time.Second
)

// cacheKey identifies a project's settings, or one of its API keys by hash.
type cacheKey struct {
	project uuid.UUID
	keyHash [32]byte // zero for the project's settings
}

func (k cacheKey) String() string { return string(k.project[:]) + string(k.keyHash[:]) }

// cacheEntry is the cached result of a lookup in the platform database.
type cacheEntry struct {
	value     string    // kind of a key ("publishable", "secret") or settings; "" if unknown
	keyUUID   uuid.UUID // zero for settings
	expiresAt time.Time
}

// loader loads an entry from the platform database. It fails with NotFound for an unknown one.
type loader func(context.Context) (cacheEntry, error)

// settingsLoader returns the loader of a project's settings.
func (s *rows) settingsLoader(id uuid.UUID) loader {
	return func(ctx context.Context) (cacheEntry, error) {
		settings, err := s.store.RestConfig(ctx, id)
		return cacheEntry{value: settings}, err
	}
}

// findSettings returns the settings of the project of a request. From here on the request counts to
// the account of the project, unless that is not known yet.
func (s *rows) findSettings(ctx context.Context, id uuid.UUID) (cacheEntry, error) {
	if key, ok := s.registry.KnownKey(id); ok {
		httpx.From(ctx).Share = httpx.In(ctx, key)
	}

	return s.lookup(ctx, cacheKey{project: id}, s.settingsLoader(id))
}

// lookup returns the cached entry of a key, or refreshes it. The entry of an unknown API key or
// project has an empty value. Concurrent requests for one key share a query, so that a busy project
// takes one connection to the platform database when its entry expires.
func (s *rows) lookup(ctx context.Context, key cacheKey, load loader) (cacheEntry, error) {
	entry, ok := s.cache.Get(key)
	if ok && httpx.From(ctx).Start.Before(entry.expiresAt) {
		return entry, nil
	}

	found, err, _ := s.lookups.Do(key.String(), func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()

		return s.refresh(bounded, key, load)
	})
	entry = found.(cacheEntry)
	if fault.Is(err, fault.NotFound) {
		return entry, nil
	}

	return entry, err
}

// refresh loads an entry and caches it. It fails with NotFound for an unknown API key or project,
// and caches that too.
func (s *rows) refresh(ctx context.Context, key cacheKey, load loader) (cacheEntry, error) {
	now := time.Now()
	s.mu.Lock()
	before := s.invalidations
	s.mu.Unlock()

	entry, err := load(ctx)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return cacheEntry{}, err
	}

	entry.expiresAt = now.Add(keyCacheTTL)

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.invalidations != before {
		return entry, err // possibly stale: do not cache
	}

	s.cache.Put(key, entry)
	return entry, err
}

// invalidate drops the cached settings of a project, which this server has paused, resumed, deleted
// or restored.
func (s *rows) invalidate(id uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.invalidations++
	s.cache.Delete(cacheKey{project: id})
	s.lookups.Forget(cacheKey{project: id}.String())
}

// verifier authenticates an API key or a token.
type verifier = func(context.Context, string) (rest.Caller, error)

// newVerifier returns the verifier of a project. It accepts the project's API keys, and tokens
// signed with its secret or one of its public keys.
func (s *rows) newVerifier(id uuid.UUID, public []json.RawMessage) (verifier, error) {
	config := jwt.Config{Secret: []byte(s.registry.JWTSecret(id))}
	if len(public) > 0 {
		keys, err := json.Marshal(map[string]any{"keys": public})
		if err != nil {
			return nil, err
		}

		config.Keys = keys
	}

	tokens, err := jwt.New(config)
	if err != nil {
		return nil, fmt.Errorf("load the public keys of the project: %w", err)
	}

	return func(ctx context.Context, text string) (rest.Caller, error) {
		if !strings.Contains(text, ".") { // an API key, well-formed or not
			return s.verifyKey(ctx, id, text)
		}

		verified, err := tokens.Verify(text)
		httpx.From(ctx).Token = err == nil
		if err != nil && token.IsPlatformJWT(text) {
			err = errPlatformToken
		}

		return rest.Caller(verified), err
	}, nil
}

// verifyKey returns the caller of an API key. It rejects a malformed key without a lookup in the
// database.
func (s *rows) verifyKey(ctx context.Context, project uuid.UUID, key string) (rest.Caller, error) {
	request := httpx.From(ctx)
	entry, err := s.lookup(ctx, cacheKey{project, token.Sum(key)}, func(ctx context.Context) (cacheEntry, error) {
		if !token.IsAPIKey(key) {
			return cacheEntry{}, errBadKey
		}

		known, err := appkey.FindProjectKey(ctx, s.store.DB(), project, token.Hash(key))
		return cacheEntry{value: known.Kind, keyUUID: known.UUID}, err
	})
	if err != nil {
		return rest.Caller{}, err
	}

	request.Key = entry.keyUUID

	switch entry.value {
	case "publishable":
		return rest.Caller{Role: "anon"}, nil
	case "secret":
		return rest.Caller{Role: "service_role"}, nil
	}

	if token.IsPersonalToken(key) {
		return rest.Caller{}, errPlatformToken
	}

	return rest.Caller{}, errBadKey
}
