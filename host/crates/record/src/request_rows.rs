//! A request as a row, and back.

use parquet::{data_type::ByteArray, errors::Result};
use veeksha_model::{
    CacheKnowledge, Cancellation, Chunk, Held, NodeId, Recorded, RequestId, RequestRecord, SessionId, Status,
    Usage,
};

use crate::{
    cells::{invalid_cell, name, small, text},
    codes::{chunk_code, chunk_kind, error_class, history_mode, stamp_source},
    nested_cells::{push_edges, push_labels, read_edges, read_labels},
    tables::{RequestColumns, RequestRows},
};

/// Bits of an unsigned number, as the column keeps them.
fn time(nanos: u64) -> i64 {
    nanos as i64
}

impl RequestColumns {
    /// Appends a request. Numbers of 64 bits keep their bits.
    pub(crate) fn push(&mut self, position: u64, record: &RequestRecord) {
        self.position.push(position as i64);
        self.session_id.push(record.id.session.0 as i64);
        self.node_id.push(record.id.node.0.into());
        self.session_total_requests.push(record.session_requests.into());
        push_edges(
            &record.parents,
            &mut self.parents,
            &mut self.parent_triggers,
            &mut self.parent_delays_ns,
        );
        self.history_parent
            .push(record.history_parent.map(|parent| parent.0.into()));
        self.wait_after_ready_ns.push(time(record.wait_after_ready));
        self.scheduler_ready_at_ns.push(time(record.intended));
        self.held_by_sessions_ns.push(time(record.held.sessions));
        self.held_by_in_flight_ns.push(time(record.held.in_flight));
        self.held_by_prefill_ns.push(time(record.held.in_prefill));
        self.scheduler_dispatched_at_ns.push(time(record.dispatched_at));
        self.client_picked_up_at_ns.push(record.picked_up_at.map(time));
        self.sent_at_ns.push(record.sent_at.map(time));
        self.first_byte_at_ns.push(record.first_byte_at.map(time));
        self.client_completed_at_ns.push(time(record.completed_at));
        self.result_processed_at_ns.push(time(record.processed_at));
        let (reason, class, message) = match &record.status {
            Status::Ok { finish_reason } => (Some(finish_reason.as_str()), None, None),
            Status::CancelledByClient => (None, None, None),
            Status::Failed { class, message } => (None, Some(class.name()), Some(message.as_str())),
        };
        self.finish_reason.push(reason.map(ByteArray::from));
        self.error_class.push(class.map(name));
        self.error_message.push(message.map(ByteArray::from));
        self.http_status.push(record.http_status.map(i64::from));
        self.push_tokens(record);
        self.server.push(record.server.into());
        self.connection_reused.push(record.connection_reused);
        self.resolve_ns.push(record.resolve.map(time));
        self.connect_ns.push(record.connect.map(time));
        self.tls_ns.push(record.tls.map(time));
        self.retried.push(record.retried);
        self.measured.push(record.measured);
        self.history_mode.push(name(record.history_mode.name()));
        let recorded = record.recorded.unwrap_or_default();
        self.was_recorded.push(record.recorded.is_some());
        self.recorded_at_ns.push(recorded.at.map(time));
        self.recorded_latency_ns.push(recorded.latency.map(time));
        self.recorded_prompt_tokens
            .push(recorded.prompt_tokens.map(i64::from));
        self.recorded_output_tokens
            .push(recorded.output_tokens.map(i64::from));
        self.ideal_cached_tokens
            .push(record.ideal_cached_tokens.map(i64::from));
        push_labels(&record.labels, &mut self.label_names, &mut self.label_values);
        self.push_chunks(record);
        self.body_digest.push(record.body_digest.map(time));
        self.response_id
            .push(record.response_id.as_deref().map(ByteArray::from));
        let trace_id = record.trace_id.map(|id| format!("{id:032x}"));
        self.trace_id
            .push(trace_id.map(|id| ByteArray::from(id.as_str())));
        self.push_cancellation(record);
        let known = |tokens: fn(CacheKnowledge) -> u32| record.cache.map(tokens).map(i64::from);
        self.known_to_server_tokens.push(known(|cache| cache.same_server));
        self.known_to_any_server_tokens
            .push(known(|cache| cache.any_server));
        self.moved_tokens.push(known(|cache| cache.moved));
    }

    fn push_cancellation(&mut self, record: &RequestRecord) {
        let cancelled = record.status == Status::CancelledByClient;
        self.cancelled_by_client.push(cancelled.then_some(true));
        let cancellation = record.cancellation.as_ref();
        let when = cancellation.map_or(&[][..], |cancellation| &cancellation.when);
        push_edges(
            when,
            &mut self.cancel_nodes,
            &mut self.cancel_triggers,
            &mut self.cancel_delays_ns,
        );
        let after_chunks = cancellation.and_then(|cancellation| cancellation.after_chunks);
        self.cancel_after_chunks.push(after_chunks.map(i64::from));
    }

    fn push_tokens(&mut self, record: &RequestRecord) {
        self.target_num_delta_prompt_tokens
            .push(record.target_prompt_tokens.into());
        self.num_delta_prompt_tokens.push(record.prompt_tokens.into());
        self.num_total_prompt_tokens
            .push(record.total_prompt_tokens.into());
        self.num_template_tokens.push(record.template_tokens.into());
        self.num_requested_output_tokens
            .push(record.target_output_tokens.map(i64::from));
        self.output_exact.push(Some(record.output_exact));
        self.num_output_tokens.push(record.output_tokens.into());
        self.output_tokens_from_usage
            .push(record.output_tokens_from_usage);
        let usage = record.usage;
        self.usage_prompt_tokens
            .push(usage.map(|usage| usage.prompt.into()));
        self.usage_completion_tokens
            .push(usage.map(|usage| usage.completion.into()));
        let part = |part: fn(Usage) -> Option<u32>| usage.and_then(part).map(i64::from);
        self.usage_cached_tokens.push(part(|usage| usage.cached));
        self.usage_reasoning_tokens.push(part(|usage| usage.reasoning));
    }

    fn push_chunks(&mut self, record: &RequestRecord) {
        let chunks = &record.chunks;
        self.arrival_stamps.push(name(record.stamps.name()));
        self.chunk_at_ns.push(chunks.iter().map(|chunk| time(chunk.at)));
        self.chunk_lag_ns
            .push(chunks.iter().map(|chunk| chunk.lag.into()));
        self.chunk_bytes
            .push(chunks.iter().map(|chunk| chunk.bytes.into()));
        self.chunk_kind
            .push(chunks.iter().map(|chunk| chunk_code(chunk.kind)));
        self.chunk_merged.push(chunks.iter().map(|chunk| chunk.merged));
        self.chunk_tokens
            .push(record.chunk_tokens.iter().map(|&tokens| tokens.into()));
    }
}

/// The same of a cell that can be missing.
pub(crate) fn small_or_none<T: TryFrom<i64>>(column: &str, cell: Option<&i64>) -> Result<Option<T>> {
    cell.map(|&cell| small(column, cell)).transpose()
}

fn moment(cell: Option<&i64>) -> Option<u64> {
    cell.map(|&cell| cell as u64)
}

fn replace(words: &mut String, by: &str) {
    words.clear();
    words.push_str(by);
}

impl RequestRows {
    /// Fills a record with a row, reusing its memory. After an error the record is of no use.
    pub(crate) fn read(&self, row: usize, record: &mut RequestRecord) -> Result<()> {
        record.id = RequestId {
            session: SessionId(*self.session_id.get(row) as u64),
            node: NodeId(small("node_id", *self.node_id.get(row))?),
        };
        record.session_requests = small("session_total_requests", *self.session_total_requests.get(row))?;
        read_edges(
            row,
            &self.parents,
            &self.parent_triggers,
            &self.parent_delays_ns,
            &mut record.parents,
        )?;
        record.history_parent = small_or_none("history_parent", self.history_parent.get(row))?.map(NodeId);
        record.wait_after_ready = *self.wait_after_ready_ns.get(row) as u64;
        record.intended = *self.scheduler_ready_at_ns.get(row) as u64;
        record.held = Held {
            sessions: *self.held_by_sessions_ns.get(row) as u64,
            in_flight: *self.held_by_in_flight_ns.get(row) as u64,
            in_prefill: *self.held_by_prefill_ns.get(row) as u64,
        };
        record.dispatched_at = *self.scheduler_dispatched_at_ns.get(row) as u64;
        record.picked_up_at = moment(self.client_picked_up_at_ns.get(row));
        record.sent_at = moment(self.sent_at_ns.get(row));
        record.first_byte_at = moment(self.first_byte_at_ns.get(row));
        record.completed_at = *self.client_completed_at_ns.get(row) as u64;
        record.processed_at = *self.result_processed_at_ns.get(row) as u64;
        self.read_status(row, &mut record.status)?;
        record.http_status = small_or_none("http_status", self.http_status.get(row))?;
        self.read_tokens(row, record)?;
        record.server = small("server", *self.server.get(row))?;
        record.connection_reused = *self.connection_reused.get(row);
        record.resolve = moment(self.resolve_ns.get(row));
        record.connect = moment(self.connect_ns.get(row));
        record.tls = moment(self.tls_ns.get(row));
        record.retried = *self.retried.get(row);
        record.measured = *self.measured.get(row);
        let mode = text("history_mode", self.history_mode.get(row))?;
        record.history_mode = history_mode(mode).ok_or_else(|| invalid_cell("history_mode", mode))?;
        record.recorded = self.recorded(row)?;
        record.body_digest = moment(self.body_digest.get(row));
        self.read_ids(row, record)?;
        read_labels(row, &self.label_names, &self.label_values, &mut record.labels)?;
        self.read_cancellation(row, record)?;
        self.read_chunks(row, record)
    }

    fn read_ids(&self, row: usize, record: &mut RequestRecord) -> Result<()> {
        let cell = self.response_id.get(row);
        let response_id = cell.map(|cell| text("response_id", cell)).transpose()?;
        record.response_id = response_id.map(str::to_owned);
        let cell = self.trace_id.get(row);
        let trace_id = cell.map(|cell| text("trace_id", cell)).transpose()?;
        let parsed = |id| u128::from_str_radix(id, 16).map_err(|_| invalid_cell("trace_id", id));
        record.trace_id = trace_id.map(parsed).transpose()?;
        Ok(())
    }

    fn read_cancellation(&self, row: usize, record: &mut RequestRecord) -> Result<()> {
        let after_chunks = small_or_none("cancel_after_chunks", self.cancel_after_chunks.get(row))?;
        record.cancellation = None;
        if after_chunks.is_none() && self.cancel_nodes.get(row).is_empty() {
            return Ok(());
        }
        let mut when = Vec::new();
        read_edges(
            row,
            &self.cancel_nodes,
            &self.cancel_triggers,
            &self.cancel_delays_ns,
            &mut when,
        )?;
        record.cancellation = Some(Box::new(Cancellation { when, after_chunks }));
        Ok(())
    }

    fn read_status(&self, row: usize, status: &mut Status) -> Result<()> {
        let cancelled = self.cancelled_by_client.get(row).copied().unwrap_or(false);
        match (
            self.finish_reason.get(row),
            self.error_class.get(row),
            self.error_message.get(row),
        ) {
            (None, None, None) if cancelled => *status = Status::CancelledByClient,
            (Some(reason), None, None) => {
                let reason = text("finish_reason", reason)?;
                if let Status::Ok { finish_reason } = status {
                    replace(finish_reason, reason);
                } else {
                    *status = Status::Ok {
                        finish_reason: reason.to_owned(),
                    };
                }
            }
            (None, Some(class), Some(message)) => {
                let name = text("error_class", class)?;
                *status = Status::Failed {
                    class: error_class(name).ok_or_else(|| invalid_cell("error_class", name))?,
                    message: text("error_message", message)?.to_owned(),
                };
            }
            _ => {
                return Err(invalid_cell(
                    "finish_reason",
                    "a request that was not answered, did not fail and was not cancelled",
                ));
            }
        }
        Ok(())
    }

    fn read_tokens(&self, row: usize, record: &mut RequestRecord) -> Result<()> {
        record.target_prompt_tokens = small(
            "target_num_delta_prompt_tokens",
            *self.target_num_delta_prompt_tokens.get(row),
        )?;
        record.prompt_tokens = small("num_delta_prompt_tokens", *self.num_delta_prompt_tokens.get(row))?;
        record.total_prompt_tokens =
            small("num_total_prompt_tokens", *self.num_total_prompt_tokens.get(row))?;
        record.template_tokens = small("num_template_tokens", *self.num_template_tokens.get(row))?;
        let asked_for = self.num_requested_output_tokens.get(row);
        record.target_output_tokens = small_or_none("num_requested_output_tokens", asked_for)?;
        record.output_exact = self.output_exact.get(row).copied().unwrap_or(false);
        record.output_tokens = small("num_output_tokens", *self.num_output_tokens.get(row))?;
        record.output_tokens_from_usage = *self.output_tokens_from_usage.get(row);
        let prompt = small_or_none("usage_prompt_tokens", self.usage_prompt_tokens.get(row))?;
        let completion = small_or_none("usage_completion_tokens", self.usage_completion_tokens.get(row))?;
        let cached = small_or_none("usage_cached_tokens", self.usage_cached_tokens.get(row))?;
        let reasoning = small_or_none("usage_reasoning_tokens", self.usage_reasoning_tokens.get(row))?;
        record.usage = match (prompt, completion, cached, reasoning) {
            (Some(prompt), Some(completion), cached, reasoning) => Some(Usage {
                prompt,
                completion,
                cached,
                reasoning,
            }),
            (None, None, None, None) => None,
            _ => return Err(invalid_cell("usage_prompt_tokens", "a part of a usage")),
        };
        record.ideal_cached_tokens = small_or_none("ideal_cached_tokens", self.ideal_cached_tokens.get(row))?;
        record.cache = self.cache(row)?;
        Ok(())
    }

    fn cache(&self, row: usize) -> Result<Option<CacheKnowledge>> {
        let same_server = small_or_none("known_to_server_tokens", self.known_to_server_tokens.get(row))?;
        let any_server = small_or_none(
            "known_to_any_server_tokens",
            self.known_to_any_server_tokens.get(row),
        )?;
        let moved = small_or_none("moved_tokens", self.moved_tokens.get(row))?;
        match (same_server, any_server, moved) {
            (Some(same_server), Some(any_server), Some(moved)) => Ok(Some(CacheKnowledge {
                same_server,
                any_server,
                moved,
            })),
            (None, None, None) => Ok(None),
            _ => Err(invalid_cell("known_to_server_tokens", "a part of three counts")),
        }
    }

    fn recorded(&self, row: usize) -> Result<Option<Recorded>> {
        let recorded = Recorded {
            at: moment(self.recorded_at_ns.get(row)),
            latency: moment(self.recorded_latency_ns.get(row)),
            prompt_tokens: small_or_none("recorded_prompt_tokens", self.recorded_prompt_tokens.get(row))?,
            output_tokens: small_or_none("recorded_output_tokens", self.recorded_output_tokens.get(row))?,
        };
        if *self.was_recorded.get(row) {
            Ok(Some(recorded))
        } else if recorded == Recorded::default() {
            Ok(None)
        } else {
            Err(invalid_cell(
                "was_recorded",
                "false although there is recorded data",
            ))
        }
    }

    fn read_chunks(&self, row: usize, record: &mut RequestRecord) -> Result<()> {
        let stamps = text("arrival_stamps", self.arrival_stamps.get(row))?;
        record.stamps = stamp_source(stamps).ok_or_else(|| invalid_cell("arrival_stamps", stamps))?;
        let at = self.chunk_at_ns.get(row);
        let lag = self.chunk_lag_ns.get(row);
        let bytes = self.chunk_bytes.get(row);
        let kind = self.chunk_kind.get(row);
        let merged = self.chunk_merged.get(row);
        if [lag.len(), bytes.len(), kind.len(), merged.len()] != [at.len(); 4] {
            return Err(invalid_cell(
                "chunk_at_ns",
                "a list that is not as long as the other chunk_ lists",
            ));
        }
        record.chunks.clear();
        record.chunks.reserve(at.len());
        for ((((&at, &lag), &bytes), &kind), &merged) in at.iter().zip(lag).zip(bytes).zip(kind).zip(merged) {
            record.chunks.push(Chunk {
                at: at as u64,
                lag: small("chunk_lag_ns", lag)?,
                bytes: small("chunk_bytes", bytes)?,
                kind: chunk_kind(kind).ok_or_else(|| invalid_cell("chunk_kind", kind))?,
                merged,
            });
        }
        record.chunk_tokens.clear();
        for &tokens in self.chunk_tokens.get(row) {
            record.chunk_tokens.push(small("chunk_tokens", tokens)?);
        }
        Ok(())
    }
}
