package main

import "slices"

// check lists the tests for one row in one package.
type check struct {
	row   string // a number, or the start of a threat's text
	dir   string // "" for a Makefile target
	tests string // a regular expression, the name of a fuzz target, or a Makefile target
}

// checks returns the tests. Tests for the most important rows come first.
func checks() []check { return slices.Concat(attacks(), trust(), costs(), floods(), fuzzTargets()) }

// costs returns the checks of what protection costs, and of third-party code.
func costs() []check {
	return []check{
		{"Start of an app", "core/process", "TestTheSandboxBarelySlowsDownStartsAndCalls"},
		{"Cost of a start", "core/apps/files", "TestCheckingFilesCostsAboutTheTimeToReadThem"},
		{"An app that lists thousands of other tools", "core/trust", "TestToolsThatReplaceOthersCountTowardsTheLimit|TestTheSizeOfAllDefinitionsIsLimited|TestManyToolsThatReplaceManyOthersAreComparedQuickly"},
		{"An app that states another version", "core/store", "TestOnlyTheNewestVersionsOfAnAppKeepTheirPins|TestPinsFromBeforeTheLimitCountAsVersions"},
		{"The same list read again", "core/trust", "TestTheSameListIsReadAgainWithoutReadingTheStore"},
		{"37", "", "vulnerabilities"},
	}
}

// trust returns the checks of installs, logins, signatures and closed audit files.
func trust() []check {
	return []check{
		{"A closed file removed", "core/audit", "TestARemovedSwappedOrTruncatedClosedFileIsLocated"},
		{"One flipped byte of a signed", "core/bundle", "TestOneFlippedByteOfASignedBundleIsRefused"},
		{"A package, or its install scripts", "core/apps", "TestPackageManagersCannotReachTheServer|TestAddressesInPackagesCannotPointToThisMachine|TestAGitDependencyOfAnNPMPackageRunsNoCode|TestNoPartOfAPyPIProjectIsBuilt|TestAWheelRunsNoCodeEvenIfTheOperatorCompilesWheels"},
		{"A package, or its install scripts", "core/apps/source", "TestOnlyRegularFilesOfPackagesAreRead|TestAPackageWithScriptsIsFoundOnceHoweverManyLinksLeadToIt"},
		{"An identity that the provider", "core/access", "TestALoginThatItsProviderNoLongerConfirmsEndsEverywhere|TestALoginIsCheckedWithItsProviderBeforeTheIntervalEnds"},
		{"An identity that the provider", "test/e2e/login", "TestFiftyUsersKeepTheirIdentityUnderLoad"},
		{"An identity that the provider", "plugins/auth/internal/relyingparty", "TestATokenIsValidWhileTheProviderReportsItAsActive"},
		{"Forged, expired, replayed", "core/access", "TestAnInvalidLogoutTokenEndsNothing|TestATokenIssuedBeforeALogoutIsNotAcceptedAgain"},
		{"Forged, expired, replayed", "plugins/auth/internal/relyingparty", "TestLogoutTokens"},
	}
}

// attacks returns the checks of the numbered rows, and of apps, tools and approvals.
func attacks() []check {
	return []check{
		{"7", "core/process", "TestNoTrickLetsAnAppSurviveAStop|TestStoppingEndsTheWholeProcessTree"},
		{"8", "core/process", "TestNoTrickLetsAnAppSurviveItsKilledServer"},
		{"A hostile app", "core/process", "TestAHostileAppGainsNothing|TestAHostileAppRunByAnOrdinaryUserGainsNothing|TestAHostileAppReadsNothingFromAProtectedServer"},
		{"A hostile app", "test/e2e/apps", "TestAHostileAppOnARealServerGainsNothing"},
		{"A file of the server that is replaced", "core/process", "TestAHiddenPathStaysClosedAfterItIsReplaced"},
		{"An app connects to a socket of the server", "core/process", "TestAHiddenSocketStaysClosed|TestAHostileAppGainsNothing"},
		{"An app listens on the port of a service", "core/process", "TestAnAppCannotListenOnThePortOfAService"},
		{"A role or group that the caller of an open", "core/mcphttp", "TestSessionsAndStreamsLoseRightsThatTheirCallersLost"},
		{"An app that names a different authorization server", "core/accounts", "TestAConfiguredClientIsOnlyUsedAtItsAuthorizationServer"},
		{"Apps that take all threads", "core/process", "TestAThreadBombLeavesTheServerItsThreads|TestAnOrdinaryUsersServerKeepsItsThreadsAndEndsLeftovers|TestAnAppCannotChangeTheLimitsThatItStartsWith"},
		{"Somebody kills a shim and its server", "core/process", "TestProcessesAreStartedOnlyWhileTheirShimRuns|TestTheNextServerEndsWhatAKilledServerAndItsShimsLeftBehind"},
		{"An app that crashes on purpose", "core/process", "TestAHostileAppGainsNothing|TestAHostileAppRunByAnOrdinaryUserGainsNothing|TestAHostileAppWithItsOwnUserGainsNothing"},
		{"An app that makes a Unix socket", "core/process", "TestAHiddenDirectoryTakesNoSockets"},
		{"Connects that wait until descriptors", "core/process", "TestAnAppCannotReachTheServersAddressesWhenDescriptorsRunOut"},
		{"Credentials next to a runtime", "core/process/sandbox", "TestRuntimesOpenOnlyTheirInterpreterLibrariesAndPackages"},
		{"Credentials next to a runtime", "test/e2e/install", "TestARuntimeInAHomeReadsOnlyItsOwnFiles"},
		{"An app or a plugin that runs as the server's user", "test/e2e/apps", "TestAnAppIsNotTheOwnerOfItsServer"},
		{"Another user's process on the control", "core/control", "TestAHomeThatOthersCanChangeHasNoSocket|TestAnotherUsersSocketGetsNoCommand"},
		{"A backup with tables", "core/store", "TestARestoreThatIsRefusedChangesNothing"},
		{"A resource of an app, or an attachment", "core/httpapi", "TestAnAppsResourceIsNeverServedAsAScript"},
		{"A tree that takes a shim's name", "core/process", "TestAProgramThatTakesAShimsNameAndKillsItsShimLeavesNoSurvivors|TestAConfinedTreeThatKillsItsShimLeavesNoProcesses"},
		{"A tree over its memory", "core/process", "TestATreeThatExceedsItsLimitEndsWithTheReason|TestMemoryThatProcessesShareIsCountedOnce"},
		{"Environment variables of callers", "core/bundle", "TestCheckEnvRefusesAndNamesTheKey"},
		{"26", "core/store", "TestNothingAcknowledgedIsLost.*"},
		{"28", "test/e2e/cluster", "TestOpenSessionsContinueWhilePostgreSQLIsUnavailableForAMinute"},
		{"39", "test/e2e/cluster", "TestServersOfTwoVersionsServeOneDatabaseForTenMinutes"},
		{"12", "plugins/auth/oidc", "TestOIDCKeepsTheContract"},
		{"5", "core/httpapi", "TestOnlyAdminsManageApps"},
		{"14", "test/e2e/mcp", "TestNoAppGetsTheCallersToken"},
		{"15", "core/mcphttp", "TestAnotherCallersSessionLooksLikeAnUnknownOne"},
		{"9", "core/bundle", "TestHostileArchivesAreRefused"},
		{"11", "core/link", "TestLoopbackPrivateAndLinkLocalAddressesAreNotDialled"},
		{"11", "plugins/auth/internal/relyingparty", "TestNoRedirectOrNameLeadsToAForbiddenAddress"},
		{"13", "plugins/auth/internal/relyingparty", "TestAThousandRandomKeyIDsAMinuteCostSixFetches"},
		{"30", "core/pluginhost", "TestAFileChangedByOneByteIsNotStarted|TestAPluginThatOthersMayReplaceIsRefused|TestAChangedPluginIsRefusedEvenWhenTheLockFileWasRemoved"},
		{"29", "test/e2e/plugins", "TestKilledPluginsAreReplacedDuringCalls"},
		{"50 changes of a tool", "core/apps", "TestFiftyRugPullsAreNotServed"},
		{"A registry that answers differently", "core/apps", "TestAnAlteredRegistryResponseIsNotServed"},
		{"Each byte of a program", "core/apps/files", "TestEveryFlippedByteOfAnInstalledFileIsFound"},
		{"A file added, removed", "core/apps/files", "TestEveryChangeToInstalledFilesIsNamed"},
		{"1,000 calls with a used approval", "core/tools", "TestAThousandReplayedOrAlteredApprovalsExecuteNothing"},
		{"32 identical calls", "core/tools", "TestOneApprovalAdmitsOneOfManyCalls"},
		{"Arguments with a duplicate member", "core/tools", "TestACallWithADuplicateMemberCannotBeApproved"},
		{"A call that is cancelled while it waits", "test/e2e/login", "TestADisconnectCancelsACallsApproval"},
		{"Calls of an allowed tool after its definition changed", "core/tools", "TestAnAdminOtherThanTheCallerMayAllowAllCallsToAToolUntilItChanges"},
		{"A tool whose definition changes", "core/tools", "TestAToolThatChangedWhileItsCallWaitedIsNotCalled"},
		{"One flipped byte anywhere", "core/audit", "TestEveryFlippedByteIsLocated"},
		{"A line removed, moved", "core/audit", "TestARemovedOrMovedLineIsLocated"},
		{"24", "core/mcphttp", "TestTheSessionLimitIsExact"},
		{"1", "core/httpapi", "TestMutatedBodiesNeverCauseAServerError"},
		{"1", "core/mcphttp", "TestBrokenBodiesAreRefusedAndHarmless"},
		{"2", "core/httpapi", "TestEndlessChunkedBodiesAreRefusedAndUseLittleMemory|TestTheMemoryForABodyIsProportionalToItsSize"},
		{"3", "core/mcphttp", "TestAllDecodersSeeTheSameMethodAndTool"},
		{"4", "core/httpapi", "TestAPanicFailsOnlyOneRequest"},
		{"6", "core/bundle", "TestCheckEnvRefusesAndNamesTheKey"},
		{"10", "core/httpapi", "TestPathsOutsideTheAppAreRefusedWithoutCallingIt"},
		{"17", "test/e2e/login", "TestReboundDomainsAndOtherOriginsAreRefused"},
		{"34", "test/e2e/login", "TestFailedLoginsAreLimited"},
		{"18", "core/httpapi", "TestStalledReadersAreDisconnectedAndTheOthersReceiveEverything"},
		{"19", "core/link", "TestHugeLinesUseLittleMemory"},
		{"23", "core/link", "TestAnEndlessResponseUsesLittleMemory"},
		{"20", "test/e2e/apps", "TestAKilledBundleIsRestartedWithinFiveSeconds"},
		{"21", "test/e2e/apps", "TestABundleThatKeepsDyingIsDeadAfterThreeAttempts"},
		{"25", "test/e2e/operations", "TestSIGTERMWaitsForCallsInProgress"},
		{"27", "test/e2e/api", "TestAChangeThatCannotBeStoredIsUndone"},
		{"33", "core/httpapi", "TestSlowConnectionsAreClosedAndDoNotAffectOthers"},
		{"16", "test/e2e/mcp", "TestAThousandCallersInTwoWorkspacesGetTheirOwnResults"},
		{"16", "core/access", "TestAnotherUsersWorkspaceLooksLikeAnUnknownOne"},
		{"22", "core/apps", "TestACallThatHangsEndsAtItsDeadlineAndTheAppIsNotRestarted|TestAppsThatHangDoNotDelayTheOthers"},
		{"31", "core/apps/logs", "TestSecretsAreRemovedFromAnAppsOutput"},
		{"31", "core/config", "TestNothingPrintsASecret"},
		{"31", "core/bundle", "TestLaunchPrintsNoSecret"},
		{"31", "plugins/auth/oidc", "TestOIDCKeepsTheContract"},
		{"32", "core/process", "TestAStartLeaksNoDescriptors"},
		{"35", "core/tools", "TestEveryCallReachesTheAppThatListsTheTool"},
		{"38", "core/httpapi", "TestAMalformedRequestIsRefusedAndClosesItsConnection|TestATruncatedChunkedBodyIsNotProcessed"},
		{"38", "core/httpapi/listener", "TestABareLineFeedInARequestLineIsFoundAtAnyReadSize"},
	}
}

// floods returns the checks of floods, failures and secrets at rest.
func floods() []check {
	return []check{
		{"Nested and repeated keys", "core/httpapi", "TestTheMemoryForABodyIsProportionalToItsSize"},
		{"Nested and repeated keys", "core/rawjson", "TestCheckingForDuplicatesIsLinearInMemory"},
		{"No file descriptors", "core/httpapi/listener", "TestAListenerWithoutDescriptorsKeepsAccepting|TestAListenerWithoutDescriptorsClosesTheLongestIdleConnectionFirst|TestAConnectionBeyondTheCapReplacesAnIdleOne"},
		{"A schema of chained", "core/tools/schema", "TestASchemaWithChainedReferencesIsTooComplex|TestACheckThatTakesTooManyStepsIsRefused|TestRegularExpressionsInSchemasTakeLinearTime"},
		{"A schema of chained", "core/tools", "TestASchemaThatIsTooComplexIsReplacedWhenItIsListed"},
		{"Arguments that do not match", "core/tools/schema", "TestACheckListsABoundedNumberOfViolations|TestRepeatedViolationsAreBounded"},
		{"A remote app that sends", "core/link", "TestAServersUnpromptedMessagesAreReadAtALimitedRate|TestResponsesAreNotDecompressed"},
		{"Lists of an app", "core/apps/offer", "TestAnAppWhoseListsAreTooLargeDoesNotStart"},
		{"Clients that do not read", "core/httpapi", "TestUnreadLargeResponsesAreBounded"},
		{"Clients that do not read", "core/mcphttp", "TestUnreadAnswersAreBounded"},
		{"A stranger, or a user, who starts", "core/access", "TestAClientThatStartsManyLoginsDropsOnlyItsOwn|TestADevicesLoginTakesLittleStorage"},
		{"A stranger, or a user, who starts", "core/store", "TestPendingBrowserLoginsAreBounded|TestAUserKeepsTheNewestLogins"},
		{"A remote app whose host name", "core/accounts", "TestAnAppAtAPublicAddressCannotReachPrivateOnesThroughItsName"},
		{"One user who takes all", "core/limits", "TestOnePrincipalCannotTakeAnothersShare|TestCallsPerSecondAreLimitedAndTheErrorSaysHowLongToWait"},
		{"One user who takes all", "core/mcphttp", "TestAUsersConcurrentToolCallsAreLimited|TestAUsersToolCallsPerSecondAreLimited"},
		{"One user who takes all", "test/e2e/mcp", "TestAMemberWhoFloodsTheServerDoesNotAffectOthers"},
		{"Requests of an app to its client", "core/link", "TestRequestsFromAnAppAreLimitedBySize"},
		{"Bad tokens and large bodies", "core/access", "TestAFloodOfInvalidTokensIsBoundedAndEvictsNoValidOnes"},
		{"Bad tokens and large bodies", "core/httpapi/intake", "TestABodyBeyondTheBudgetWaitsAndIsThenRefused"},
		{"A revoked token", "test/e2e/cluster", "TestATokenRevokedOnOneServerEndsSessionsAndStreamsOnAll"},
		{"A revoked token", "core/httpapi", "TestAnEventStreamEndsImmediatelyWhenItsCredentialsAreRevoked"},
		{"A revoked token", "core/access", "TestACallerIsValidUntilTheUserTheMembershipOrTheKeyIsGone"},
		{"A restriction of an app's connections", "core/process/sandbox", "TestANameCannotResolveToAnAddressOfThisMachine"},
		{"A restriction of an app's connections", "test/e2e/apps", "TestARestrictedAppReachesAGrantedPortOfThisMachine"},
		{"An app that asks for more", "core/accounts", "TestAPersonConsentsOnlyToWhatThePageShowed|TestAUserWhoLosesTheRightDuringALoginCannotLinkAnAccount"},
		{"A call by one of many people", "core/accounts", "TestNoCallUsesTheAccountOfAnotherUserOrName"},
		{"An authorization server that is down", "core/accounts", "TestARealOutageOfAProviderLosesNoGrant|TestOutagesOfAProviderLoseNoGrant"},
		{"Cost of a call with a person's own", "core/accounts", "TestAPersonalAccountCostsNoMoreThanASharedOne"},
		{"A login that replaces", "core/accounts", "TestAReplacedLoginIsRevokedButTheNewOneIsKept|TestAnAppThatRefusesEveryTokenIsAskedOnceForItsServer|TestAHangingServerDoesNotDelayOthers"},
		{"A login that replaces", "core/apps", "TestAnAppWithAccountsHasNoCredentialsOfItsOwn"},
		{"Hidden and control", "core/tools", "TestHiddenCharactersInDescriptionsAreListedVisiblyWithAWarning"},
		{"PostgreSQL connections", "core/store", "TestSilentPostgresConnectionsFailAndFollowersCatchUp"},
		{"A title set by a person", "core/store", "TestATitleSetByAPersonIsNotReplacedByTheAutomaticOne"},
		{"A full or read-only disk", "core/store", "TestAFullDiskLeavesTheOldStateAndAClearError|TestAReadOnlyDiskLeavesTheOldStateAndAClearError|TestAReplacedOrRemovedHomeRefusesWrites|TestAnEmptyOrMissingDatabaseNextToAppsIsNotAFirstStart"},
		{"Flipped bytes in a backup", "core/store", "TestARestoreRefusesFlippedBytes"},
		{"A session store that lost", "core/mcphttp", "TestLiveSessionsAreWrittenAgainAfterTheStoreLostItsData|TestSessionsAreWrittenAgainToAStoreThatLostItsData"},
		{"A start that another command", "core/httpapi", "TestTheOpenAPIDocumentListsTheConflictForAnInterruptedCommand"},
		{"Usage and approvals older", "core/store", "TestUsageOlderThanItsRetentionIsDeleted|TestAFileShrinksWhenMuchOfItIsUnused"},
		{"A source that no rule", "core/apps", "TestSourcesThatNoPatternAllowsAreNeverInstalled|TestEachRoleInstallsFromItsRegistries|TestAWorkspaceAdminInstallsByNameOnlyIfTheSandboxWorks"},
		{"The database, its log or a backup", "core/store", "TestASecretIsNotInAnyFileOfTheStateOrOfABackup|TestAnInterruptedRewriteIsCompletedAtTheNextStart"},
		{"The database, its log or a backup", "test/e2e/operations", "TestNoFileOrBackupContainsAnAppsSecret"},
		{"The wrong key", "core/store", "TestWithoutTheRightKeyTheStateIsNotOpenedAndNothingIsLost|TestABackupIsRestoredWithItsKeyIntoEitherDatabase"},
		{"A record moved", "core/store/seal", "TestARecordIsReadableOnlyWithItsKeyAndInItsPlace"},
	}
}

// fuzzTargets returns the parsers.
func fuzzTargets() []check {
	return []check{
		{"36", "core/rawjson", "FuzzScanner"},
		{"36", "core/rawjson", "FuzzCheckUnique"},
		{"36", "core/config", "FuzzLoad"},
		{"36", "core/bundle", "FuzzManifest"},
		{"36", "core/bundle", "FuzzUnpack"},
		{"36", "core/mcphttp", "FuzzParse"},
		{"36", "core/rpc", "FuzzEnvelope"},
		{"36", "core/rpc", "FuzzLineReader"},
		{"36", "core/link/remote", "FuzzEvents"},
		{"36", "core/webguard", "FuzzNoOtherNameIsMistakenForThisMachine"},
		{"36", "core/webguard", "FuzzHost"},
		{"36", "core/httpapi", "FuzzBodiesNeverCauseAServerError"},
		{"36", "plugins/auth/internal/relyingparty", "FuzzToken"},
		{"36", "plugins", "FuzzDecode"},
		{"36", "core/store/seal", "FuzzOpen"},
		{"36", "core/apps/source", "FuzzPattern"},
	}
}
