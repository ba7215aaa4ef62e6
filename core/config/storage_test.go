package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheStorageURLIsASecretAndMayComeFromTheEnvironment(t *testing.T) {
	c := mustLoad(t, "storage: {url: 'postgres://u:${env:PASSWORD}@db:5432/ropewalk?sslmode=require'}", Environment{"PASSWORD": "canary"})
	equal(t, "url", c.Storage.URL.Reveal(), "postgres://u:canary@db:5432/ropewalk?sslmode=require")
	if printed := fmt.Sprintf("%+v %#v", c, c.Storage); strings.Contains(printed, "canary") {
		t.Errorf("the password is printed: %s", printed)
	}
	equal(t, "no url", mustLoad(t, "storage:", nil).Storage.URL.Reveal(), "")
}

func TestTheStorageURLFromTheEnvironmentOverridesTheFile(t *testing.T) {
	c := mustLoad(t, "storage: {url: 'postgres://file/x'}", Environment{EnvStorageURL: "postgres://env/x"})
	equal(t, "url", c.Storage.URL.Reveal(), "postgres://env/x")
	if _, err := load(t, "", Environment{EnvStorageURL: "mysql://canary"}); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "storage.url") {
		t.Errorf("%v", err)
	}
}

func TestAnUnsupportedStorageURLIsRefusedWithoutShowingIt(t *testing.T) {
	for _, url := range []string{"mysql://u:canary@db/x", "canary", "postgres://", "'host=db password=canary'"} {
		_, err := load(t, "storage: {url: "+url+"}", nil)
		said := said(t, err)
		if !strings.Contains(said, "storage.url: must be a PostgreSQL address such as postgres://user:password@host:5432/database") || strings.Contains(said, "canary") {
			t.Errorf("%s: %s", url, said)
		}
	}
}

func TestTheRetentionOfUsageIsInDays(t *testing.T) {
	equal(t, "retention", mustLoad(t, "storage: {usageRetentionDays: 400}", nil).Storage.UsageRetention, 400*24*time.Hour)
	equal(t, "forever", mustLoad(t, "", nil).Storage.UsageRetention, time.Duration(0))
}

func TestApprovalsEventsAndAuditFilesHaveARetention(t *testing.T) {
	c := mustLoad(t, "storage: {approvalRetentionDays: 90, eventRetentionHours: 12}\naudit: {file: a.log, rotateMegabytes: 64, rotateDays: 7, retentionDays: 90}", nil)
	equal(t, "approvals", c.Storage.ApprovalRetention, 90*24*time.Hour)
	equal(t, "events", c.Storage.EventRetention, 12*time.Hour)
	equal(t, "bytes", c.Audit.MaxBytes, int64(64<<20))
	equal(t, "age", c.Audit.MaxAge, 7*24*time.Hour)
	equal(t, "closed files", c.Audit.Retention, 90*24*time.Hour)
	c = mustLoad(t, "audit: {file: a.log}", nil)
	equal(t, "approvals by default", c.Storage.ApprovalRetention, 30*24*time.Hour)
	if c.Audit.MaxBytes != 0 || c.Audit.MaxAge != 0 || c.Audit.Retention != 0 || c.Storage.EventRetention != 0 {
		t.Errorf("the rest by default: %+v", c.Audit)
	}
	for settings, want := range map[string]string{
		"{retentionDays: 1, file: a}":     "audit.retentionDays: requires rotateMegabytes or rotateDays",
		"{rotateDays: 1, url: https://x}": "rotateMegabytes, rotateDays and retentionDays require file",
		"{rotateMegabytes: -1, file: a}":  "audit.rotateMegabytes",
	} {
		_, err := load(t, "audit: "+settings, nil)
		if said := said(t, err); !strings.Contains(said, want) {
			t.Errorf("%s: %s", settings, said)
		}
	}
}

func TestStaleMembershipIsFiveMinutesUnlessSet(t *testing.T) {
	equal(t, "default", mustLoad(t, "", nil).Storage.StaleMembership, 5*time.Minute)
	equal(t, "off", mustLoad(t, "storage: {staleMembershipSeconds: 0}", nil).Storage.StaleMembership, time.Duration(0))
	equal(t, "set", mustLoad(t, "storage: {staleMembershipSeconds: 60}", nil).Storage.StaleMembership, time.Minute)
}

func TestTheStateKeysComeFromOnePlace(t *testing.T) {
	c := mustLoad(t, "storage: {keyFile: keys/state}", nil)
	if !c.Storage.Keys.Set() || !strings.HasSuffix(c.Storage.Keys.File, "/keys/state") || !strings.HasPrefix(c.Storage.Keys.File, "/") {
		t.Errorf("%+v", c.Storage.Keys)
	}
	c = mustLoad(t, "", Environment{EnvStorageKey: "canary"})
	equal(t, "from the environment", c.Storage.Keys.Text.Reveal(), "canary")
	if printed := fmt.Sprintf("%+v %v", c, c.Effective()); strings.Contains(printed, "canary") {
		t.Errorf("the key is printed: %s", printed)
	}
	if mustLoad(t, "", nil).Storage.Keys.Set() {
		t.Error("there should be no key by default")
	}
	for _, storage := range []string{"{keyFile: a, keyCommand: [b]}", "{keyFile: a, key: b}", "{keyCommand: [a], key: b}"} {
		_, err := load(t, "storage: "+storage, nil)
		if said := said(t, err); !strings.Contains(said, "is also set; remove one of them") {
			t.Errorf("%s: %s", storage, said)
		}
	}
}

func TestALoginIsCheckedAgainAfterFiveMinutesUnlessSet(t *testing.T) {
	for setting, want := range map[string]time.Duration{"": 5 * time.Minute, ", recheckSeconds: 60": time.Minute, ", recheckSeconds: 0": 0} {
		c := mustLoad(t, "auth: {adapter: oidc, issuer: https://id.example.com"+setting+"}", nil)
		equal(t, "auth"+setting, c.Auth[0].Recheck, want)
		if strings.Contains(string(c.Auth[0].Settings.JSON()), "recheck") {
			t.Error("the adapter should not get the server's setting")
		}
	}
	_, err := load(t, "auth: {adapter: oidc, issuer: https://id.example.com, recheckSeconds: 301}", nil)
	if said := said(t, err); !strings.Contains(said, "auth.recheckSeconds") {
		t.Error(said)
	}
}
