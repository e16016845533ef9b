package wiki_test

import (
	"go/build"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parley-server/parley/internal/search"
	"github.com/parley-server/parley/internal/store/wiki"
	"github.com/parley-server/parley/internal/testing/dbtest"
	"github.com/parley-server/parley/internal/testing/slow"
)

// judgedPackages are the packages of the standard library whose documentation is searched.
const judgedPackages = `bufio bytes compress/gzip context crypto/sha256 crypto/subtle encoding/json errors fmt io io/fs math/rand net net/http
	net/url os os/exec os/signal path path/filepath regexp slices sort strconv strings sync sync/atomic time`

// judgedQueries are questions and the documents that answer them.
var judgedQueries = map[string]string{
	"read a file line by line":                            "bufio/Scanner bufio/ScanLines bufio/Scanner.Scan",
	"How do I wait for a group of goroutines to finish?":  "sync/WaitGroup sync/WaitGroup.Wait",
	"run a function only once":                            "sync/Once sync/Once.Do sync/OnceFunc",
	"join path elements into a single path":               "path/Join path/filepath/Join",
	"parse a URL":                                         "net/url/Parse net/url/URL net/url/ParseRequestURI net/url/URL.Parse",
	"escape a string so that it can be placed in a query": "net/url/QueryEscape",
	"copy from a reader to a writer":                      "io/Copy io/CopyN io/CopyBuffer",
	"cancel a context after a timeout":                    "context/WithTimeout context/WithTimeoutCause",
	"convert a string to an integer":                      "strconv/Atoi strconv/ParseInt",
	"create a temporary directory":                        "os/MkdirTemp os/TempDir",
	"delete a directory and all its children":             "os/RemoveAll os/Root.RemoveAll",
	"compare in constant time":                            "crypto/subtle/ConstantTimeCompare",
	"sort a slice with a comparison function":             "slices/SortFunc sort/Slice slices/SortStableFunc",
	"binary search in a sorted slice": "slices/BinarySearch sort/Search slices/BinarySearchFunc " +
		"sort/SearchInts sort/SearchStrings",
	"walk a file tree":          "path/filepath/Walk path/filepath/WalkDir io/fs/WalkDir",
	"decode JSON from a stream": "encoding/json/Decoder encoding/json/Decoder.Decode encoding/json/NewDecoder",
	"indent JSON": "encoding/json/MarshalIndent encoding/json/Indent " +
		"encoding/json/Encoder.SetIndent",
	"text of an HTTP status code":                           "net/http/StatusText",
	"redirect a request":                                    "net/http/Redirect net/http/RedirectHandler",
	"limit the size of a request body":                      "net/http/MaxBytesReader net/http/MaxBytesHandler",
	"set a cookie":                                          "net/http/SetCookie net/http/Cookie",
	"split a string around white space":                     "strings/Fields strings/FieldsSeq bytes/Fields",
	"replace all occurrences of a substring":                "strings/ReplaceAll strings/Replace bytes/ReplaceAll bytes/Replace",
	"trim leading and trailing white space":                 "strings/TrimSpace bytes/TrimSpace",
	"match a regular expression against a string":           "regexp/MatchString regexp/Regexp.MatchString regexp/Match",
	"format a time":                                         "time/Time.Format time/Time.AppendFormat",
	"parse a duration":                                      "time/ParseDuration",
	"What fires at intervals?":                              "time/Ticker time/NewTicker time/Tick",
	"value of an environment variable":                      "os/LookupEnv os/Getenv",
	"find an executable in the PATH":                        "os/exec/LookPath",
	"run a command and return its standard output":          "os/exec/Cmd.Output os/exec/Cmd.CombinedOutput",
	"SHA256 checksum of data":                               "crypto/sha256/Sum256 crypto/sha256/New crypto/sha256/package",
	"random permutation":                                    "math/rand/Perm math/rand/Rand.Perm math/rand/v2/Perm math/rand/Shuffle",
	"relay incoming signals to a channel":                   "os/signal/Notify",
	"listen for TCP connections":                            "net/Listen net/ListenTCP net/ListenConfig.Listen",
	"resolve a host name to addresses":                      "net/LookupHost net/LookupIP net/Resolver.LookupHost",
	"shut down the server without interrupting connections": "net/http/Server.Shutdown",
	"report whether an error matches a target":              "errors/Is",
	"buffered writer":                                       "bufio/Writer bufio/NewWriter bufio/NewWriterSize",
	"atomically swap a pointer": "sync/atomic/SwapPointer sync/atomic/Pointer.Swap " +
		"sync/atomic/CompareAndSwapPointer",
	"read/write mutual exclusion lock":     "sync/RWMutex",
	"serve files of a directory over HTTP": "net/http/FileServer net/http/FileServerFS net/http/ServeFile net/http/Dir",
}

// TestSearchRanksWhatAnswers compares the search with an index in memory that ranks by BM25, which
// was the search of earlier releases.
func TestSearchRanksWhatAnswers(t *testing.T) {
	t.Parallel()
	slow.Test(t, "indexes thousands of documents")
	var paths, contents []string
	goDocs(t, filepath.Join(build.Default.GOROOT, "src"), func(name, content string) bool {
		if slices.Contains(strings.Fields(judgedPackages), path.Dir(name)) && !slices.Contains(paths, name) {
			paths, contents = append(paths, name), append(contents, content)
		}
		return true
	})
	now, before := judge(t, paths, contents, judgedQueries)
	if now[0] <= before[0] || now[1] <= before[1] {
		t.Errorf("%v queries are answered first and in the first five, and by the index in memory %v", now, before)
	}
}

// judge stores documents and returns how many queries have their first answer as the first hit and
// among the first five hits, now and with the index in memory.
func judge(t *testing.T, paths, contents []string, queries map[string]string) (now, before [2]int) {
	t.Helper()
	pool := dbtest.New(t)
	s, ws := wiki.New(pool), tenant(t, pool, "docs")
	var sections []search.Section
	for i, name := range paths {
		sections = append(sections, search.Split(name, contents[i])...)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO documents (workspace_id, path, title, content)
		SELECT $1, path, split_part(content, E'\n', 1), content FROM unnest($2::text[], $3::text[]) AS d (path, content)`, ws, paths,
		contents); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = s.IndexStale(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	memory := search.New(sections)
	for query, answers := range queries {
		hits, err := s.Search(t.Context(), ws, query, "", 5)
		if err != nil {
			t.Fatal(err)
		}
		found := rankOf(hits, answers)
		countRank(&now, found)
		old := rankOf(memory.Find(query, 5), answers)
		countRank(&before, old)
		if found != 0 {
			t.Logf("%q: rank %d, before %d: %s", query, found, old, strings.Join(docsIn(hits), " "))
		}
	}
	t.Logf("of %d queries in %d documents %v are answered first and in the first five, before %v", len(queries), len(paths), now, before)
	return now, before
}

func countRank(counts *[2]int, rank int) {
	if rank == 0 {
		counts[0]++
	}
	if rank >= 0 {
		counts[1]++
	}
}

// rankOf returns the position of the first answer, or -1.
func rankOf(hits []search.Hit, answers string) int {
	return slices.IndexFunc(docsIn(hits), func(doc string) bool { return slices.Contains(strings.Fields(answers), doc) })
}

func docsIn(hits []search.Hit) (docs []string) {
	for _, h := range hits {
		docs = append(docs, strings.TrimSuffix(h.Doc, ".md"))
	}
	return docs
}
