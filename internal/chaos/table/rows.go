package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// row is a row of docs/security.md.
type row struct{ number, threat, required string }

// readRows reads the rows of the tables in a document: those of the first are numbered, the others have a
// threat, what must hold and what was measured.
func readRows(path string) ([]row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var rows []row
	lines := bufio.NewScanner(f)
	for threats := false; lines.Scan(); {
		cells := strings.Split(strings.Trim(lines.Text(), "| "), " | ")
		switch _, err := strconv.Atoi(cells[0]); {
		case !strings.HasPrefix(lines.Text(), "|"):
			threats = false
		case cells[0] == "Threat":
			threats = true
		case err == nil && len(cells) == 4:
			rows = append(rows, row{cells[0], cells[1], cells[3]})
		case threats && len(cells) == 3:
			rows = append(rows, row{"", cells[0], cells[1]})
		}
	}
	return rows, lines.Err()
}

// check is the tests of one row in one package.
type check struct {
	row   string // a number, or the beginning of a threat
	dir   string
	tests string // a regular expression
}

// checks are the tests, the most important rows first.
func checks() []check {
	return []check{
		{"7", "core/process", "TestNoTrickOfAnAppSurvivesItsStop|TestTheWholeTreeEnds"},
		{"8", "core/process", "TestNoTrickOfAnAppSurvivesTheKillOfTheServer"},
		{"A hostile app", "core/process", "TestAHostileAppGetsNothing|TestAHostileAppOfAnOrdinaryUserGetsNothing|TestAHostileAppBesideAProtectedServerReadsNothingOfIt"},
		{"A tree that takes a shim's name", "core/process", "TestAProgramThatTakesAShimsNameAndKillsItsShimLeavesNoSurvivors|TestAConfinedTreeThatKillsItsShimLeavesNoSurvivors"},
		{"A tree over its memory", "core/process", "TestATreeOverItsLimitEndsWithTheReason"},
		{"Environment variables of callers", "core/bundle", "TestCheckEnvRefusesAndNamesTheKey"},
		{"26", "core/store", "TestNothingAcknowledgedIsLost.*"},
		{"28", "test/e2e/cluster", "TestOpenSessionsContinueWhilePostgreSQLIsAwayForAMinute"},
		{"12", "plugins/auth/oidc", "TestNoForgedTokenIsAccepted"},
		{"5", "core/httpapi", "TestWhoMayManageApps"},
		{"15", "core/mcphttp", "TestAnotherCallersSessionAnswersLikeOneThatNeverWas"},
		{"9", "core/bundle", "TestHostileArchivesAreRefused"},
		{"11", "core/link", "TestLoopbackPrivateAndLinkLocalAddressesAreNotDialled"},
		{"11", "plugins/auth/internal/relyingparty", "TestNothingLeadsToAnAddressOutOfReach"},
		{"13", "plugins/auth/internal/relyingparty", "TestAThousandRandomKeyIDsAMinuteCostSixFetches"},
		{"30", "core/pluginhost", "TestAFileChangedByOneByteIsNotStarted|TestAPluginThatOthersMayExchangeIsRefused"},
		{"29", "test/e2e/plugins", "TestKilledPluginsAreReplacedWhileCallsGoOn"},
		{"50 changes of a tool", "core/apps", "TestFiftyRugPullsAreNotServed"},
		{"Each byte of a program", "core/apps/files", "TestEveryFlippedByteOfAnInstalledFileIsFound"},
		{"A file added, removed", "core/apps/files", "TestEveryChangeOfInstalledFilesIsNamed"},
		{"1,000 calls with a used approval", "core/tools", "TestAThousandReplayedOrAlteredApprovalsExecuteNothing"},
		{"32 identical calls", "core/tools", "TestOneApprovalLetsOneOfManyCallsThrough"},
		{"A tool whose definition changes", "core/tools", "TestAToolThatChangedWhileItsCallWaitedIsNotCalled"},
		{"One flipped byte anywhere", "core/audit", "TestEveryFlippedByteIsLocated"},
		{"A line removed, moved", "core/audit", "TestARemovedOrMovedLineIsLocated"},
		{"24", "core/mcphttp", "TestTheCapIsExact"},
		{"1", "core/httpapi", "TestMutatedBodiesAreNeverTheServersFault"},
		{"1", "core/mcphttp", "TestBrokenBodiesAreRefusedAndDoNoHarm"},
		{"2", "core/httpapi", "TestEndlessChunkedBodiesAreRefusedAndTakeLittleMemory|TestABodyOfManyLongNestedKeysTakesMemoryInProportion"},
		{"3", "core/mcphttp/message", "TestNoTwoReadersSeeDifferentMethodsOrTools"},
		{"4", "core/httpapi", "TestAPanicFailsOneRequestOnly"},
		{"6", "core/bundle", "TestCheckEnvRefusesAndNamesTheKey"},
		{"10", "core/httpapi", "TestPathsThatLeaveTheAppAreRefusedUnasked"},
		{"17", "test/e2e/login", "TestReboundNamesAndOtherOriginsAreRefused"},
		{"34", "test/e2e/login", "TestFailedLoginsAreLimited"},
		{"18", "core/httpapi", "TestStalledReadersAreCutAndTheOthersGetEverything"},
		{"19", "core/link", "TestHugeLinesNeedLittleMemory"},
		{"23", "core/link", "TestAnEndlessAnswerNeedsLittleMemory"},
		{"20", "test/e2e/apps", "TestAKilledBundleIsRestartedWithinFiveSeconds"},
		{"21", "test/e2e/apps", "TestABundleThatAlwaysDiesIsDeadAfterThreeAttempts"},
		{"25", "test/e2e/operations", "TestSIGTERMWaitsForCallsInProgress"},
		{"27", "test/e2e/api", "TestAChangeThatCannotBeStoredIsUndone"},
		{"33", "core/httpapi", "TestSlowConnectionsAreCutAndHinderNobody"},
		{"38", "core/httpapi", "TestAMalformedRequestIsRefusedAndIsTheLastOfItsConnection|TestAChunkedBodyThatIsCutRunsNothing"},
	}
}
