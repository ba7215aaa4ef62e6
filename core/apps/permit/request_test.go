package permit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestADefinitionRequestsThePathsThatItNames(t *testing.T) {
	g, home, docs := machine(t)
	root := filepath.Dir(home)
	for file, text := range map[string]string{"x.db": "", "s.py": "", "project/pyproject.toml": ""} {
		at := filepath.Join(docs, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []struct {
		program string
		args    []string
		dir     string
		env     map[string]string
		names   []string
		want    []string // kind and target
	}{
		{program: "node", args: []string{root + "/server/apps/x/index.js", docs}, want: []string{"write " + docs}},
		{program: "/usr/bin/python3", args: []string{"-u", docs + "/s.py", "--verbose"}, want: []string{"read " + docs + "/s.py"}},
		{program: "node", args: []string{"./s.py"}, dir: docs, want: []string{"read " + docs}},
		{program: "uv", args: []string{"run", "serve"}, dir: docs + "/project", want: []string{"write " + docs + "/project"}},
		{program: "x", dir: root + "/server/apps/x"},
		{program: "python3", args: []string{"-m", "server", "redis://localhost", docs + "/x.db"}, want: []string{"net localhost:6379", "write " + docs}},
		{program: "node", args: []string{"--require", "x", docs + "/s.py"}, want: []string{"read " + docs + "/s.py"}},
		{program: "uv", args: []string{"--directory", docs, "run", "s.py"}, want: []string{"read " + docs}},
		{program: "uv", args: []string{"run", "--project=" + docs + "/project", "serve"}, want: []string{"write " + docs + "/project"}},
		{program: "db", args: []string{"--db-path", docs + "/x.db"}, want: []string{"write " + docs}},
		{program: "db", args: []string{"--db-path=" + docs + "/new.db"}, want: []string{"write " + docs}},
		{program: "db", env: map[string]string{"DATABASE_URL": "sqlite:///" + docs + "/x.db"}, want: []string{"write " + docs}},
		{program: "x", args: []string{"redis://user:pass@localhost/0"}, want: []string{"net localhost:6379"}},
		{program: "x", args: []string{"--url", "http://[::1]:8080/x"}, want: []string{"net [::1]:8080"}},
		{program: "x", args: []string{"127.0.0.1:9000"}, want: []string{"net 127.0.0.1:9000"}},
		{program: "x", env: map[string]string{"DB_HOST": "localhost", "DB_PORT": "5433"}, want: []string{"net localhost:5433"}},
		{program: "x", args: []string{"--host", "localhost", "--port", "7000"}, want: []string{"net localhost:7000"}},
		{program: "x", names: []string{"mcp-redis"}, want: []string{"net localhost:6379"}},
		{program: "x", names: []string{"mcp-redis"}, env: map[string]string{"REDIS_URL": "redis://cache.example.com"}},
		{program: "x", args: []string{"https://example.com/", "/usr/lib", "/none", "localhost:27247", home, home + "/.ssh/id", "/", "/etc/shadow"}},
		{program: "x", env: map[string]string{"ROOTS": docs + "/project:" + home + "/notes"}, want: []string{"write " + docs + "/project", "write " + home + "/notes"}},
		// settings of other forms
		{program: "x", env: map[string]string{"DIRS": `["` + docs + `/project", {"file": "` + docs + `/s.py"}]`}, want: []string{"write " + docs + "/project", "read " + docs + "/s.py"}},
		{program: "x", args: []string{"root=" + docs + "/project"}, want: []string{"write " + docs + "/project"}},
		{program: "x", args: []string{"--mount=type=bind,src=" + docs + "/project"}, want: []string{"write " + docs + "/project"}},
		{program: "x", args: []string{"host=localhost port=5433 dbname=x"}, want: []string{"net localhost:5433"}},
		{program: "x", env: map[string]string{"DSN": "Server=127.0.0.1;Port=3307;Uid=x"}, want: []string{"net 127.0.0.1:3307"}},
		{program: "x", args: []string{"jdbc:postgresql://localhost/x"}, want: []string{"net localhost:5432"}},
		{program: "x", env: map[string]string{"DB_URL": "mysql+pymysql://root@localhost/x"}, want: []string{"net localhost:3306"}},
		{program: "x", env: map[string]string{"REDIS_HOST": "127.0.0.1"}, want: []string{"net 127.0.0.1:6379"}},
		{program: "x", env: map[string]string{"PGHOST": "localhost", "PGPORT": "5433"}, want: []string{"net localhost:5433"}},
		{program: "x", env: map[string]string{"DB_HOST": "localhost"}, names: []string{"mcp-mysql"}, want: []string{"net localhost:3306"}},
		{program: "x", args: []string{"--endpoint", "localhost:8080/mcp"}, want: []string{"net localhost:8080"}},
		{program: "x", args: []string{"mongodb://a:b@localhost:27017,127.0.0.1:27018/x?replicaSet=r"}, want: []string{"net localhost:27017", "net 127.0.0.1:27018"}},
		{program: "x", args: []string{"postgres://u:p#s@localhost:5433/x"}, want: []string{"net localhost:5433"}},
		{program: "x", env: map[string]string{"BROKERS": "localhost:9092, localhost:9093,b.example.com:9092"}, want: []string{"net localhost:9092", "net localhost:9093"}},
		{program: "x", env: map[string]string{"DB_SERVER": "localhost", "DB_PORT": "1434"}, want: []string{"net localhost:1434"}},
		{program: "x", env: map[string]string{"MSSQL_HOSTNAME": "127.0.0.1"}, want: []string{"net 127.0.0.1:1433"}},
	} {
		var got []string
		for _, r := range g.Requests(Definition{Program: one.program, Args: one.args, Dir: one.dir, Env: one.env, Names: one.names}) {
			got = append(got, string(r.Kind)+" "+r.Target)
		}
		if !slices.Equal(got, one.want) {
			t.Errorf("%s %v %v asks for %q, want %q", one.program, one.args, one.env, got, one.want)
		}
	}
}

func TestWritingIsOfferedOnlyWhereItCanBeGranted(t *testing.T) {
	g, _, docs := machine(t)
	for path, want := range map[string][]string{docs: {"read", "write"}, "/etc/passwd": {"read"}} {
		for _, r := range g.Requests(Definition{Program: "x", Args: []string{path}}) {
			if !slices.Equal(r.Choice, want) {
				t.Errorf("%s: %v, want %v", path, r.Choice, want)
			}
		}
	}
}

func TestAScriptIsRequestedAloneWithItsDirectoryAsAnAlternative(t *testing.T) {
	g, home, docs := machine(t)
	script := func(at string) Definition {
		if err := os.WriteFile(at, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return Definition{Program: "python3", Args: []string{at}}
	}
	asked := g.Requests(script(docs + "/s.py"))
	if len(asked) != 1 || asked[0].Target != docs+"/s.py" || asked[0].Also == nil || asked[0].Also.Target != docs {
		t.Errorf("asked for %+v", asked)
	}
	for _, at := range []string{filepath.Join(home, "s.py"), filepath.Join(filepath.Dir(home), "s.py")} { // their directories contain protected paths
		if asked := g.Requests(script(at)); len(asked) != 1 || asked[0].Target != at || asked[0].Also != nil {
			t.Errorf("%s: asked for %+v", at, asked)
		}
	}
}

func TestPathsInADefinitionThatOnlyTheConfigurationCanAllowAreListed(t *testing.T) {
	g, home, docs := machine(t)
	key, none := filepath.Join(home, ".ssh", "id"), filepath.Join(home, ".ssh", "none")
	var closed []string
	for _, a := range g.Refused(Definition{Program: "x", Args: []string{key, none, docs, docs + "/none/file"}, Names: []string{"playwright"}}) {
		closed = append(closed, a.Target)
	}
	if !slices.Equal(closed, []string{key, none}) {
		t.Errorf("refused: %q", closed)
	}
}
