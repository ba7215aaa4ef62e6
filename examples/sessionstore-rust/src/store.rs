//! Keeps the sessions in a redb file. One thread writes. Calls that arrive while it commits share the next
//! transaction, so they all wait for the disk only once.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::Message;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, Table, TableDefinition};
use tokio::sync::oneshot;
use tonic::Status;

use crate::log;
use crate::services::proto::{Record, SessionTouch};

/// Maps an id to the end of the lifetime, in milliseconds since 1970, and the encoded record.
const SESSIONS: TableDefinition<&str, (u64, &[u8])> = TableDefinition::new("sessions");

const WRITES_AT_ONCE: usize = 1_000; // per transaction
const SWEEP_EVERY: Duration = Duration::from_secs(60);
const SWEEP_AT_ONCE: usize = 1_000; // entries to check before other calls get their turn

type Sessions<'txn> = Table<'txn, &'static str, (u64, &'static [u8])>;
type Change = Box<dyn FnOnce(&mut Sessions) -> Result<Outcome, Status> + Send>;

/// The result of a change whose transaction is on disk.
enum Outcome {
    Done,
    Replaced(bool),
    /// The id to continue from, or nothing once all entries have been checked.
    Swept(Option<String>),
}

struct Write {
    change: Change,
    answer: oneshot::Sender<Result<Outcome, Status>>,
}

/// The session store. ropewalk.sessionstore.v1 documents its methods.
pub struct Store {
    db: Arc<Database>,
    writes: SyncSender<Write>,
    sweeper: tokio::task::JoinHandle<()>,
}

impl Store {
    /// Opens the file in `directory`, or creates it if it does not exist.
    pub async fn open(directory: PathBuf) -> Result<Self, Status> {
        let db = Arc::new(blocking(move || open(&directory)).await?);
        let (writes, queue) = mpsc::sync_channel(WRITES_AT_ONCE);
        let writer = db.clone();
        thread::Builder::new().name("writer".to_owned()).spawn(move || write(&writer, &queue)).map_err(unavailable)?;
        let sweeper = tokio::spawn(sweep(writes.clone()));
        Ok(Self { db, writes, sweeper })
    }

    pub async fn put(&self, record: Record, ttl: Option<prost_types::Duration>) -> Result<(), Status> {
        let ttl = lifetime(ttl)?;
        if record.id.is_empty() {
            return Err(Status::invalid_argument("a session needs an id"));
        }
        self.change(move |sessions| {
            insert(sessions, &record, ends(ttl))?;
            Ok(Outcome::Done)
        })
        .await?;
        Ok(())
    }

    /// Returns the record and the end of its lifetime.
    pub async fn get(&self, id: String) -> Result<(Record, prost_types::Timestamp), Status> {
        let db = self.db.clone();
        let found = blocking(move || {
            let sessions = db.begin_read().map_err(unavailable)?.open_table(SESSIONS).map_err(unavailable)?;
            live(&sessions, &id)
        });
        let (record, ends) = found.await?.ok_or_else(|| Status::not_found("no such session"))?;
        Ok((record, prost_types::Timestamp::from(UNIX_EPOCH + Duration::from_millis(ends))))
    }

    pub async fn touch(&self, touches: Vec<SessionTouch>) -> Result<(), Status> {
        let touches = touches.into_iter().map(|t| Ok((t.id, t.last_accessed_at, lifetime(t.ttl)?))).collect::<Result<Vec<_>, Status>>()?;
        if touches.is_empty() {
            return Ok(());
        }
        self.change(move |sessions| {
            for (id, at, ttl) in touches {
                if let Some((mut record, _)) = live(sessions, &id)? {
                    if later(&at, &record.last_accessed_at) {
                        record.last_accessed_at = at;
                    }
                    insert(sessions, &record, ends(ttl))?;
                }
            }
            Ok(Outcome::Done)
        })
        .await?;
        Ok(())
    }

    pub async fn delete(&self, id: String) -> Result<(), Status> {
        self.change(move |sessions| {
            sessions.remove(id.as_str()).map_err(unavailable)?;
            Ok(Outcome::Done)
        })
        .await?;
        Ok(())
    }

    /// Returns whether the record was written, which it is if the previous one had the expected owner.
    pub async fn replace(&self, record: Record, expected_owner: String, ttl: Option<prost_types::Duration>) -> Result<bool, Status> {
        let ttl = ttl.filter(|ttl| ttl.seconds != 0 || ttl.nanos != 0).map(|ttl| lifetime(Some(ttl))).transpose()?;
        if record.id.is_empty() {
            return Err(Status::invalid_argument("a session needs an id"));
        }
        let outcome = self.change(move |sessions| {
            let (before, until) = live(sessions, &record.id)?.ok_or_else(|| Status::not_found("no such session"))?;
            let replaced = before.owner == expected_owner;
            if replaced {
                insert(sessions, &record, ttl.map_or(until, ends))?;
            }
            Ok(Outcome::Replaced(replaced))
        });
        Ok(matches!(outcome.await?, Outcome::Replaced(true)))
    }

    /// Waits for pending writes.
    pub async fn close(&self) {
        self.sweeper.abort();
        let _ = self.change(|_| Ok(Outcome::Done)).await;
    }

    async fn change(&self, change: impl FnOnce(&mut Sessions) -> Result<Outcome, Status> + Send + 'static) -> Result<Outcome, Status> {
        submit(&self.writes, Box::new(change)).await
    }
}

/// Passes a change to the writer and waits until it is on disk.
async fn submit(writes: &SyncSender<Write>, change: Change) -> Result<Outcome, Status> {
    let (answer, outcome) = oneshot::channel();
    let mut write = Write { change, answer };
    loop {
        match writes.try_send(write) {
            Ok(()) => break,
            Err(mpsc::TrySendError::Full(again)) => write = again,
            Err(mpsc::TrySendError::Disconnected(_)) => return Err(Status::unavailable("the store is closed")),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    outcome.await.map_err(|_| Status::unavailable("the store is closed"))?
}

fn open(directory: &Path) -> Result<Database, Status> {
    let path = directory.join("sessions.redb");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let db = Database::builder().create_file(file.map_err(unavailable)?).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Status::unavailable("another process has the session file open"),
        other => unavailable(other),
    })?;
    let txn = db.begin_write().map_err(unavailable)?;
    txn.open_table(SESSIONS).map_err(unavailable)?; // creates it
    txn.commit().map_err(unavailable)?;
    Ok(db)
}

/// Writes until the store is closed.
fn write(db: &Database, queue: &Receiver<Write>) {
    while let Ok(first) = queue.recv() {
        let batch: Vec<Write> = std::iter::once(first)
            .chain(std::iter::from_fn(|| queue.try_recv().ok()))
            .take(WRITES_AT_ONCE)
            .filter(|write| !write.answer.is_closed()) // the caller no longer waits
            .collect();
        let (changes, answers): (Vec<_>, Vec<_>) = batch.into_iter().map(|write| (write.change, write.answer)).unzip();
        match commit(db, changes) {
            Ok(outcomes) => {
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    let _ = answer.send(outcome);
                }
            }
            Err(status) => {
                log::error("Sessions could not be written.", &[("error", status.message().into())]);
                for answer in answers {
                    let _ = answer.send(Err(status.clone()));
                }
            }
        }
    }
}

/// Runs changes in one transaction. If it returns an error, nothing was written. If the outcome of a change is an
/// error, only that change wrote nothing.
fn commit(db: &Database, changes: Vec<Change>) -> Result<Vec<Result<Outcome, Status>>, Status> {
    let txn = db.begin_write().map_err(unavailable)?;
    let mut outcomes = Vec::with_capacity(changes.len());
    {
        let mut sessions = txn.open_table(SESSIONS).map_err(unavailable)?;
        for change in changes {
            match change(&mut sessions) {
                // The file failed in the middle of a change, so the whole transaction is abandoned.
                Err(status) if status.code() == tonic::Code::Unavailable => return Err(status),
                outcome => outcomes.push(outcome),
            }
        }
    }
    txn.commit().map_err(unavailable)?;
    Ok(outcomes)
}

/// Removes expired sessions from time to time.
async fn sweep(writes: SyncSender<Write>) {
    let mut every = tokio::time::interval(SWEEP_EVERY);
    loop {
        every.tick().await;
        let mut after = Some(String::new());
        while let Some(from) = after {
            after = match submit(&writes, Box::new(move |sessions| sweep_some(sessions, &from))).await {
                Ok(Outcome::Swept(next)) => next,
                _ => None, // the writer has logged the reason; the next sweep tries again
            };
        }
    }
}

fn sweep_some(sessions: &mut Sessions, after: &str) -> Result<Outcome, Status> {
    let (now, mut over, mut last, mut seen) = (now(), Vec::new(), None, 0);
    for entry in sessions.range(after..).map_err(unavailable)?.take(SWEEP_AT_ONCE) {
        let (id, value) = entry.map_err(unavailable)?;
        if value.value().0 <= now {
            over.push(id.value().to_owned());
        }
        seen += 1;
        last = Some(id.value().to_owned());
    }
    for id in over {
        sessions.remove(id.as_str()).map_err(unavailable)?;
    }
    Ok(Outcome::Swept(last.filter(|_| seen == SWEEP_AT_ONCE).map(|id| id + "\0"))) // the smallest id that comes after it
}

/// Returns a session and the end of its lifetime, unless it has expired.
fn live(sessions: &impl ReadableTable<&'static str, (u64, &'static [u8])>, id: &str) -> Result<Option<(Record, u64)>, Status> {
    let Some(entry) = sessions.get(id).map_err(unavailable)? else { return Ok(None) };
    let (ends, record) = entry.value();
    if ends <= now() {
        return Ok(None);
    }
    Ok(Some((Record::decode(record).map_err(unavailable)?, ends)))
}

fn insert(sessions: &mut Sessions, record: &Record, ends: u64) -> Result<(), Status> {
    sessions.insert(record.id.as_str(), (ends, record.encode_to_vec().as_slice())).map_err(unavailable)?;
    Ok(())
}

/// Returns a lifetime, which must be positive.
fn lifetime(ttl: Option<prost_types::Duration>) -> Result<Duration, Status> {
    let positive = ttl.and_then(|ttl| Duration::try_from(ttl).ok()).filter(|ttl| !ttl.is_zero());
    positive.ok_or_else(|| Status::invalid_argument("the ttl of a session must be positive"))
}

/// Returns when a lifetime that begins now ends. It rounds up, because a session must not expire too early.
fn ends(ttl: Duration) -> u64 {
    now().saturating_add(u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX / 2)).min(253_402_300_799_000) // the year 9999
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn later(a: &Option<prost_types::Timestamp>, b: &Option<prost_types::Timestamp>) -> bool {
    let order = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    a.as_ref().map(order) > b.as_ref().map(order)
}

fn unavailable(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("the session file: {error}"))
}

/// Runs work that waits for the disk on a thread of its own, so that it does not block other calls.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Status> + Send + 'static) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Status::internal(format!("a thread of the store has died: {error}")))?
}
