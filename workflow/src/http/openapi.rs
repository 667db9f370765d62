//! The description of the API, as `OpenAPI` 3.1: one operation per path that is served, with the workflows, channels and flows that
//! it has.
//!
//! It says what is so: a fuzzer is run against it. So a pattern stands here exactly as `asked` reads it, and each operation lists
//! every status that it answers with.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::StatusCode;
use axum::response::Response;
use utoipa::ToSchema;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, ParameterStyle,
    PathItem, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AdditionalProperties, Array, Schema, SchemaType, Type};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OneOfBuilder, OpenApi,
    OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder, Server,
};

use super::allowed::CONTROLS;
use super::api::{Api, Served};
use super::asked::{Asked, Count, Nothing};
use super::guides::Command;
use super::policy::Action;
use super::problem::Problem;
use super::reply;
use super::runs::{LARGEST_PAGE, PICTURES};
use crate::guided::{Flow, FlowState};
use crate::{Channel, Definition, Recorded, RunState, Workflow};

type AnySchema = RefOr<Schema>;

/// What the fields of a workflow's input and its output look like, for the API's description: [`Api::describe`] takes it.
#[derive(Clone, Default)]
#[must_use = "help: give it to `.describe(workflow, shape)`"]
pub struct Shape {
    parameters: Vec<(String, AnySchema, bool)>,
    output: Option<AnySchema>,
    named: Vec<(String, AnySchema)>,
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.parameters.iter().map(|(name, ..)| name);
        f.debug_set().entries(names).finish()
    }
}

impl Shape {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parameter of the workflow, by its name.
    pub fn parameter<T: ToSchema>(mut self, name: impl Into<String>) -> Self {
        T::schemas(&mut self.named);
        self.parameters.push((name.into(), T::schema(), true));
        self
    }

    /// A parameter that may be left out: an `Option`.
    pub fn optional<T: ToSchema>(mut self, name: impl Into<String>) -> Self {
        T::schemas(&mut self.named);
        self.parameters.push((name.into(), T::schema(), false));
        self
    }

    /// What the workflow gives.
    pub fn output<T: ToSchema>(mut self) -> Self {
        T::schemas(&mut self.named);
        self.output = Some(T::schema());
        self
    }
}

/// What is known of the types that stand behind names.
#[derive(Clone, Default)]
pub(super) struct Shapes {
    workflows: BTreeMap<&'static str, Shape>,
    channels: BTreeMap<&'static str, (AnySchema, Option<AnySchema>)>,
    flows: BTreeMap<String, AnySchema>,
    named: Vec<(String, AnySchema)>,
}

impl Api {
    /// Says in the API's description what the input and the output of a workflow look like. Of one that is not described it says that
    /// the input is an object.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # use workflow::{Engine, Failure, workflow};
    /// use utoipa::ToSchema;
    /// use workflow::http::{Api, Shape, router};
    ///
    /// #[derive(Serialize, Deserialize, ToSchema)]
    /// struct Order {
    ///     item: String,
    /// }
    ///
    /// #[workflow]
    /// async fn ship(order: Order) -> Result<String, Failure> {
    ///     Ok(order.item)
    /// }
    ///
    /// fn api(engine: Engine) -> Api {
    ///     router(engine).describe(ship, Shape::new().parameter::<Order>("order").output::<String>())
    /// }
    /// ```
    pub fn describe<A, F: Definition<A>>(mut self, _workflow: F, shape: Shape) -> Self {
        let shapes = &mut self.0.shapes;
        shapes.named.extend(shape.named.iter().cloned());
        shapes
            .workflows
            .insert(<F::Workflow as Workflow>::NAME, shape);
        self
    }

    /// Says in the API's description what the messages of a channel look like.
    pub fn describe_messages<T: Recorded + ToSchema, R>(mut self, channel: &Channel<T, R>) -> Self {
        let shapes = &mut self.0.shapes;
        T::schemas(&mut shapes.named);
        shapes.channels.insert(channel.name(), (T::schema(), None));
        self
    }

    /// Says in the API's description what the requests of a channel and their answers look like.
    pub fn describe_requests<T, R>(mut self, channel: &Channel<T, R>) -> Self
    where
        T: Recorded + ToSchema,
        R: Recorded + ToSchema,
    {
        let shapes = &mut self.0.shapes;
        T::schemas(&mut shapes.named);
        R::schemas(&mut shapes.named);
        let both = (T::schema(), Some(R::schema()));
        shapes.channels.insert(channel.name(), both);
        self
    }

    /// Says in the API's description what the person's data of a flow looks like.
    pub fn describe_flow<S: FlowState + ToSchema>(mut self, flow: &Flow<S>) -> Self {
        let shapes = &mut self.0.shapes;
        S::schemas(&mut shapes.named);
        shapes.flows.insert(flow.name().to_owned(), S::schema());
        self
    }

    /// The API's description, to be merged into one of your own. The router serves it at `openapi.json`, with where it is nested.
    pub fn openapi(&self) -> OpenApi {
        self.0.openapi("")
    }
}

/// `GET /openapi.json`.
pub(super) async fn document(asked: Asked) -> Result<Response, Problem> {
    asked.allow(Action::Describe)?;
    asked.query::<Nothing>()?;
    let document = asked.api.openapi(&asked.prefix());
    Ok(reply::value(StatusCode::OK, &document))
}

impl Served {
    fn openapi(&self, prefix: &str) -> OpenApi {
        let mut components = schemas();
        for (name, schema) in &self.shapes.named {
            components = components.schema(name, schema.clone());
        }
        let mut paths = PathsBuilder::new();
        for operation in self.operations() {
            paths = operation.into_paths(paths);
        }
        let info = InfoBuilder::new()
            .title("Workflows")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "Starts, watches and controls runs of durable workflows.",
            ));
        let url = if prefix.is_empty() { "/" } else { prefix };
        OpenApiBuilder::new()
            .info(info.build())
            .servers(Some([Server::new(url)]))
            .paths(paths.build())
            .components(Some(components.build()))
            .build()
    }

    fn operations(&self) -> Vec<Operation> {
        let mut all = fixed();
        #[cfg(feature = "schedules")]
        all.extend(schedules());
        for workflow in self.engine.workflows() {
            all.push(start(workflow, self.shapes.workflows.get(workflow)));
        }
        for line in self.lines.values() {
            let shape = self.shapes.channels.get(line.name());
            let (message, answer) = shape.cloned().unwrap_or((anything(), None));
            all.push(if line.answers() {
                request(line.name(), message, answer.unwrap_or_else(anything))
            } else {
                send(line.name(), message)
            });
        }
        if !self.values.is_empty() {
            all.extend(values());
        }
        for flow in self.flows.keys() {
            let data = self.shapes.flows.get(flow).cloned();
            all.extend(guide(flow, &data.unwrap_or_else(anything)));
        }
        let most = i64::try_from(self.patience.as_secs()).unwrap_or(i64::MAX);
        for operation in &mut all {
            operation.longest_wait = most;
        }
        all
    }
}

// ----- operations -----

/// A status, what it says, and the type of its body with its schema.
type Answer = (u16, &'static str, Option<(&'static str, AnySchema)>);

/// One operation, as the others are.
struct Operation {
    method: HttpMethod,
    path: String,
    id: String,
    summary: String,
    tag: &'static str,
    parameters: Vec<Parameter>,
    waits: bool,
    longest_wait: i64,
    body: Option<(AnySchema, bool)>,
    answers: Vec<Answer>,
    problems: Vec<u16>,
}

const JSON: &str = reply::JSON;

impl Operation {
    fn new(method: HttpMethod, tag: &'static str, path: &str, id: &str, summary: &str) -> Self {
        let mut parameters = Vec::new();
        if path.contains("{run}") {
            let known = if id.starts_with("start_") { ID } else { ANY_ID };
            let id = text().pattern(Some(known));
            parameters.push(parameter(
                ParameterIn::Path,
                "run",
                id.into(),
                "The run's id.",
            ));
        }
        if path.contains("{schedule}") {
            parameters.push(parameter(
                ParameterIn::Path,
                "schedule",
                text().pattern(Some(ID)).into(),
                "The schedule's name.",
            ));
        }
        // What every operation may answer with: a query that it does not take, the policy, the store.
        let mut problems = vec![400, 403, 503];
        if path.contains("{run}") || path.contains("{schedule}") {
            problems.push(404);
        }
        Self {
            method,
            path: path.to_owned(),
            id: id.to_owned(),
            summary: summary.to_owned(),
            tag,
            parameters,
            waits: false,
            longest_wait: 0,
            body: None,
            answers: Vec::new(),
            problems,
        }
    }

    fn get(tag: &'static str, path: &str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Get, tag, path, id, summary)
    }

    fn post(tag: &'static str, path: &str, id: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Post, tag, path, id, summary)
    }

    fn query(mut self, name: &str, schema: impl Into<AnySchema>, says: &str) -> Self {
        self.parameters
            .push(parameter(ParameterIn::Query, name, schema.into(), says));
        self
    }

    /// A parameter that is several values with commas between them.
    fn listed(mut self, name: &str, of: impl Into<AnySchema>, says: &str) -> Self {
        let schema = list(of.into());
        let mut parameter = parameter(ParameterIn::Query, name, schema, says);
        parameter.style = Some(ParameterStyle::Form);
        parameter.explode = Some(false);
        self.parameters.push(parameter);
        self
    }

    /// It waits for something, for so many seconds at most.
    fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    fn key(mut self, says: &str) -> Self {
        let schema = text().pattern(Some(KEY));
        self.parameters.push(parameter(
            ParameterIn::Header,
            "Idempotency-Key",
            schema.into(),
            says,
        ));
        self
    }

    fn body(mut self, schema: impl Into<AnySchema>, required: bool) -> Self {
        self.body = Some((schema.into(), required));
        self.problems.extend([413, 415, 422]);
        self
    }

    fn answers(self, status: u16, says: &'static str, schema: impl Into<AnySchema>) -> Self {
        self.answers_as(status, says, JSON, schema)
    }

    fn answers_as(
        mut self,
        status: u16,
        says: &'static str,
        kind: &'static str,
        schema: impl Into<AnySchema>,
    ) -> Self {
        self.answers
            .push((status, says, Some((kind, schema.into()))));
        self
    }

    fn problems(mut self, statuses: &[u16]) -> Self {
        self.problems.extend(statuses);
        self
    }

    fn into_paths(mut self, paths: PathsBuilder) -> PathsBuilder {
        if self.waits {
            let wait = number(0).maximum(Some(self.longest_wait));
            let says = "How many seconds to wait for it.";
            self = self.query("wait", wait, says);
        }
        let mut operation = OperationBuilder::new()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .tag(self.tag)
            .parameters(Some(self.parameters));
        if let Some((schema, required)) = self.body {
            let content = ContentBuilder::new().schema(Some(schema)).build();
            let required = if required {
                Required::True
            } else {
                Required::False
            };
            let body = RequestBodyBuilder::new().content(JSON, content);
            operation = operation.request_body(Some(body.required(Some(required)).build()));
        }
        let mut answers = BTreeMap::new();
        for (status, says, content) in self.answers {
            let known = answers.remove(&status);
            let mut response: ResponseBuilder =
                known.unwrap_or_else(|| ResponseBuilder::new().description(says));
            if let Some((kind, schema)) = content {
                let content = ContentBuilder::new().schema(Some(schema)).build();
                response = response.content(kind, content);
            }
            answers.insert(status, response);
        }
        for (status, response) in answers {
            operation = operation.response(status.to_string(), response);
        }
        self.problems.sort_unstable();
        self.problems.dedup();
        for status in self.problems {
            let content = ContentBuilder::new().schema(Some(named("Problem"))).build();
            let known = StatusCode::from_u16(status).ok();
            let says = known.and_then(|status| status.canonical_reason());
            let response = ResponseBuilder::new()
                .description(says.unwrap_or_default())
                .content("application/problem+json", content);
            operation = operation.response(status.to_string(), response);
        }
        paths.path(self.path, PathItem::new(self.method, operation))
    }
}

/// As `RunId` has it.
const ID: &str = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+$";
/// With those of children.
const ANY_ID: &str = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+(/[^\\u0000-\\u001f\\u007f-\\u009f]+)?$";
/// As `asked` reads it.
const KEY: &str = "^(\"[!#-.0-~]{1,512}\"|[!#-.0-~]{1,512})$";

fn parameter(within: ParameterIn, name: &str, schema: AnySchema, says: &str) -> Parameter {
    let required = if matches!(within, ParameterIn::Path) {
        Required::True
    } else {
        Required::False
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(within)
        .required(required)
        .schema(Some(schema))
        .description(Some(says))
        .build()
}

/// What there is whatever the engine runs.
fn fixed() -> Vec<Operation> {
    let states = RunState::ALL.map(RunState::word);
    let place = text().pattern(Some("^[0-9a-f]{1,16}$"));
    let page = page_size;

    let rewind = closed(&[("to", text().into(), true)]);
    let fork = closed(&[
        ("id", text().pattern(Some(ID)).into(), true),
        ("at", maybe(text().into()), false),
    ]);
    let skip = closed(&[
        ("entry", counted().into(), true),
        ("reason", text().into(), true),
    ]);
    let rewound = object(&[
        ("dry_run", yes_or_no().into(), true),
        ("to", text().into(), true),
        ("generation", number(0).into(), true),
        ("removed", list(named("Record")), true),
        ("returned", list(anything()), true),
        ("cancelled", list(text().into()), true),
    ]);
    vec![
        Operation::get(
            "service",
            "/workflows",
            "describe",
            "What may be started, sent on, and led",
        )
        .answers(200, "What there is", named("Described")),
        Operation::get("service", "/openapi.json", "openapi", "This description").answers(
            200,
            "It",
            object(&[]),
        ),
        Operation::get(
            "runs",
            "/runs",
            "list",
            "Runs, in the order in which they were started",
        )
        .query("workflow", text(), "Only runs of this workflow.")
        .listed(
            "state",
            text().enum_values(Some(states)),
            "Only runs in one of these states, with commas between them.",
        )
        .query("id_prefix", text(), "Only runs whose id begins with this.")
        .query("id_contains", text(), "Only runs whose id has this in it.")
        .query(
            "created_from",
            counted(),
            "Only runs created then or later.",
        )
        .query("created_until", counted(), "Only runs created before then.")
        .query(
            "changed_from",
            counted(),
            "Only runs that last changed then or later.",
        )
        .query(
            "order",
            text().enum_values(Some(["oldest", "newest"])),
            "Which come first; the oldest unless it is said.",
        )
        .query("limit", page(), "So many at most; 100 unless it is said.")
        .query("cursor", place, "The `next` of the page before.")
        .answers(
            200,
            "A page; a short one, with `next`, when much was looked at for little",
            named("Page"),
        ),
        Operation::get("runs", "/counts", "counts", "How many runs there are").answers(
            200,
            "In all, by state, and by workflow and state",
            named("Counts"),
        ),
        Operation::get(
            "runs",
            "/changes",
            "changes",
            "The counts now and whenever something has changed, as server-sent events",
        )
        .answers_as(
            200,
            "Events `changed`",
            "text/event-stream",
            event(["changed"]),
        ),
        Operation::get("runs", "/runs/{run}", "status", "What a run is doing").answers(
            200,
            "The run",
            named("Run"),
        ),
        Operation::get(
            "operating",
            "/runs/{run}/allowed",
            "allowed",
            "What whoever asks may do to a run",
        )
        .answers(
            200,
            "By the names of the calls and of the channels",
            object(&[
                (
                    "controls",
                    list(
                        text()
                            .enum_values(Some(CONTROLS.map(|(name, _)| name)))
                            .into(),
                    ),
                    true,
                ),
                ("messages", list(text().into()), true),
                ("requests", list(text().into()), true),
            ]),
        ),
        Operation::get("runs", "/runs/{run}/result", "result", "How a run ended")
            .waits()
            .answers(200, "It has ended", named("Ended"))
            .answers(202, "It has not, or is parked", named("Run")),
        Operation::get(
            "runs",
            "/runs/{run}/history",
            "history",
            "The records of a run",
        )
        .query("after", counted(), "Only records after this number.")
        .query("limit", page(), "So many at most; 100 unless it is said.")
        .answers(200, "Some of them", named("Records")),
        Operation::get(
            "runs",
            "/runs/{run}/export",
            "export",
            "The history of a run, as tests replay it",
        )
        .answers(200, "All of it", named("History")),
        Operation::get(
            "runs",
            "/runs/{run}/dead-letters",
            "dead_letters",
            "The messages that a run could not read",
        )
        .query("after", counted(), "Only those after this arrival.")
        .query("limit", page(), "So many at most; 100 unless it is said.")
        .answers(200, "Some of them", named("Letters")),
        Operation::get(
            "runs",
            "/runs/{run}/graph",
            "graph",
            "A run, laid over the picture of its workflow",
        )
        .query(
            "format",
            text().enum_values(Some(PICTURES.map(|(name, _)| name))),
            "The form of the picture; `json` unless it is said.",
        )
        .answers(200, "The picture", object(&[]))
        .answers_as(200, "The picture", "text/vnd.mermaid", text())
        .answers_as(200, "The picture", "text/vnd.graphviz", text()),
        Operation::get(
            "runs",
            "/runs/{run}/events",
            "events",
            "The records of a run as they come, as server-sent events",
        )
        .query(
            "after",
            counted(),
            "Only records after this number; `Last-Event-ID` says the same.",
        )
        .answers_as(
            200,
            "Events `record`, `gap` and `end`",
            "text/event-stream",
            event(["record", "gap", "end"]),
        )
        .nothing(204, "It has ended, and there is no more"),
        Operation::post("operating", "/runs/{run}/cancel", "cancel", "Cancels a run")
            .query("undo", yes_or_no(), "Whether what it did is undone first.")
            .answers(200, "The run", named("Run"))
            .problems(&[409]),
        Operation::post(
            "operating",
            "/runs/{run}/recover",
            "recover",
            "Retries a run that failed",
        )
        .answers(200, "The run", named("Run"))
        .problems(&[409]),
        Operation::post(
            "operating",
            "/runs/{run}/resume",
            "resume",
            "Drives a run that is parked or was evicted",
        )
        .answers(200, "The run", named("Run")),
        Operation::post(
            "operating",
            "/runs/{run}/rewind",
            "rewind",
            "Takes a run back to a location",
        )
        .query("dry_run", yes_or_no(), "Only says what it would do.")
        .body(rewind, true)
        .answers(200, "What it did, or would do", rewound)
        .problems(&[409]),
        Operation::post(
            "operating",
            "/runs/{run}/fork",
            "fork",
            "Starts a run from a copy of another's history",
        )
        .body(fork, true)
        .answers(201, "The new run", named("Run"))
        .problems(&[409]),
        Operation::post(
            "operating",
            "/runs/{run}/skip-undo",
            "skip_undo",
            "Goes on rolling back without an undo that keeps failing",
        )
        .body(skip, true)
        .answers(200, "The run", named("Run"))
        .problems(&[409]),
        Operation::post(
            "operating",
            "/gc",
            "gc",
            "Deletes the runs that are kept no longer",
        )
        .answers(
            200,
            "How many were deleted, and how many wait for a parent or a child to end",
            object(&[
                ("deleted", counted().into(), true),
                ("awaited", counted().into(), true),
            ]),
        ),
    ]
}

/// Of schedules, whichever there are.
#[cfg(feature = "schedules")]
fn schedules() -> Vec<Operation> {
    let pause = closed(&[("reason", text().into(), false)]);
    let backfill = closed(&[("from", time(), true), ("to", time(), true)]);
    vec![
        Operation::get("schedules", "/schedules", "schedules", "All schedules").answers(
            200,
            "They, by name",
            object(&[("schedules", list(named("Schedule")), true)]),
        ),
        Operation::get(
            "schedules",
            "/schedules/{schedule}",
            "schedule",
            "What a schedule is doing",
        )
        .answers(200, "The schedule", named("Schedule")),
        Operation::post(
            "schedules",
            "/schedules/{schedule}/pause",
            "pause",
            "Starts nothing by itself from now on",
        )
        .body(pause, false)
        .answers(200, "The schedule", named("Schedule")),
        Operation::post(
            "schedules",
            "/schedules/{schedule}/resume",
            "resume_schedule",
            "Goes on; what came due meanwhile is not started",
        )
        .answers(200, "The schedule", named("Schedule")),
        Operation::post(
            "schedules",
            "/schedules/{schedule}/trigger",
            "trigger",
            "Starts a run now",
        )
        .answers(202, "The run, found at `location`", named("Run"))
        .problems(&[409, 422, 500, 501]),
        Operation::post(
            "schedules",
            "/schedules/{schedule}/backfill",
            "backfill",
            "Starts a run for each firing of a time that has passed, unless it has one",
        )
        .body(backfill, true)
        .answers(
            200,
            "How many were started",
            object(&[
                ("started", number(0).into(), true),
                ("existing", number(0).into(), true),
            ]),
        )
        .problems(&[409, 422, 500, 501]),
    ]
}

impl Operation {
    /// Answers with nothing.
    fn nothing(mut self, status: u16, says: &'static str) -> Self {
        self.answers.push((status, says, None));
        self
    }
}

fn start(workflow: &str, shape: Option<&Shape>) -> Operation {
    let (input, output, required) = match shape {
        Some(shape) => {
            let parameters = shape.parameters.iter();
            let fields = parameters
                .map(|(name, schema, required)| (name.as_str(), schema.clone(), *required));
            let required = shape.parameters.iter().any(|(.., required)| *required);
            (
                closed(&fields.collect::<Vec<_>>()).into(),
                shape.output.clone(),
                required,
            )
        }
        None => (AnySchema::from(object(&[])), None, false),
    };
    let mut operation = Operation::post(
        "workflows",
        &format!("/workflows/{workflow}/runs"),
        &format!("start_{workflow}"),
        &format!("Starts a run of `{workflow}`"),
    );
    operation.problems.push(409);
    operation
        .key("The run's id. Made again with the same one and the same input, it is the same run.")
        .waits()
        .query(
            "delay",
            number(0).maximum(Some(u32::MAX)),
            "Begins so many seconds from now.",
        )
        .query(
            "not_before",
            counted(),
            "Does not begin before this time, in milliseconds since the Unix epoch. With `delay` the later of the two counts.",
        )
        .query(
            "priority",
            priority(),
            "Of those that wait for the same the higher goes first; 0 unless it is said.",
        )
        .body(input, required)
        .answers(200, "It has ended", ended(output.unwrap_or_else(anything)))
        .answers(
            202,
            "It was started, and is found at `location`",
            named("Run"),
        )
}

fn values() -> [Operation; 2] {
    let row = || object(&[("key", text().into(), true), ("value", anything(), true)]);
    let page = object(&[
        ("values", list(row().into()), true),
        ("next", text().into(), false),
    ]);
    let mut value = Operation::get("values", "/values/{key}", "value", "A value");
    value.parameters.push(parameter(
        ParameterIn::Path,
        "key",
        text().min_length(Some(1)).into(),
        "Its key.",
    ));
    [
        Operation::get(
            "values",
            "/values",
            "values",
            "Values, in the order of their keys",
        )
        .query("prefix", text(), "What their keys begin with.")
        .query("after", text(), "The `next` of the page before.")
        .query(
            "limit",
            page_size(),
            "So many at most; 100 unless it is said.",
        )
        .answers(200, "A page", page)
        .problems(&[404, 500]),
        value.answers(200, "The value", row()).problems(&[404, 500]),
    ]
}

fn page_size() -> ObjectBuilder {
    number(1).maximum(Some(i64::try_from(LARGEST_PAGE).unwrap_or(i64::MAX)))
}

fn send(channel: &str, message: AnySchema) -> Operation {
    Operation::post(
        "channels",
        &format!("/runs/{{run}}/messages/{channel}"),
        &format!("send_{channel}"),
        &format!("Sends a message on `{channel}`"),
    )
    .key("A second message to the run and channel with the same key is not sent.")
    .body(message, true)
    .answers(
        202,
        "It is in the run's inbox",
        object(&[("sent", yes_or_no().into(), true)]),
    )
    .problems(&[409])
}

fn request(channel: &str, message: AnySchema, answer: AnySchema) -> Operation {
    let waiting = object(&[
        ("answered", yes_or_no().into(), true),
        ("key", text().into(), true),
    ]);
    Operation::post(
        "channels",
        &format!("/runs/{{run}}/requests/{channel}"),
        &format!("request_{channel}"),
        &format!("Sends a request on `{channel}`, and waits for the answer"),
    )
    .key("Made again with the same key, it waits for the same answer.")
    .waits()
    .body(message, true)
    .answers(200, "The answer", answer)
    .answers(
        202,
        "It is not answered yet: ask again with the key",
        waiting,
    )
    .problems(&[409])
}

fn guide(flow: &str, data: &AnySchema) -> Vec<Operation> {
    let path = format!("/guides/{flow}/{{run}}");
    let revision = || ("revision", maybe(counted().into()), false);
    let pressed: AnySchema = object(&[
        ("view", named("View"), true),
        ("moved", object(&[]).into(), false),
        ("problems", list(named("Found")), false),
    ])
    .into();
    let mut all = vec![
        Operation::get(
            "guides",
            &path,
            &format!("view_{flow}"),
            &format!("A guide of `{flow}`"),
        )
        .query("after", counted(), "Waits for a revision after this one.")
        .waits()
        .answers(200, "The guide", named("View"))
        .problems(&[409]),
    ];
    for (word, command) in Command::ALL {
        let body: AnySchema = match command {
            Command::Start => closed(&[revision(), ("state", data.clone(), true)]).into(),
            Command::Edit => closed(&[revision(), ("set", object(&[]).into(), true)]).into(),
            Command::Release => closed(&[revision(), ("with", anything(), false)]).into(),
            Command::SkipUndo => closed(&[revision(), ("reason", text().into(), true)]).into(),
            _ => closed(&[revision()]).into(),
        };
        let required = matches!(command, Command::Start | Command::Edit | Command::SkipUndo);
        all.push(
            Operation::post(
                "guides",
                &format!("{path}/{word}"),
                &format!("{}_{flow}", word.replace('-', "_")),
                &format!("Presses `{word}` on a guide of `{flow}`"),
            )
            .key("A second command with the same key is not obeyed.")
            .body(body, required)
            .waits()
            .answers(200, "What came of it", pressed.clone())
            .answers(202, "It is still being done", pressed.clone())
            .problems(&[409, 500]),
        );
    }
    all
}

// ----- schemas -----

fn schemas() -> ComponentsBuilder {
    let states = RunState::ALL.map(RunState::word);
    let ends = [RunState::Completed, RunState::Failed, RunState::Cancelled].map(RunState::word);
    ComponentsBuilder::new()
        .schema(
            "Schedule",
            object(&[
                ("name", text().into(), true),
                ("cron", text().into(), true),
                ("zone", text().into(), true),
                ("workflow", text().into(), false),
                ("next", time(), false),
                (
                    "last",
                    object(&[("at", time(), true), ("run", text().into(), true)]).into(),
                    false,
                ),
                (
                    "paused",
                    object(&[("at", time(), true), ("reason", text().into(), true)]).into(),
                    false,
                ),
                ("trouble", text().into(), false),
            ]),
        )
        .schema(
            "Problem",
            object(&[
                (
                    "type",
                    text().pattern(Some("^workflow:[a-z_]+$")).into(),
                    true,
                ),
                ("title", text().into(), true),
                ("status", number(400).maximum(Some(599)).into(), true),
                ("detail", text().into(), true),
            ]),
        )
        .schema(
            "Described",
            object(&[
                ("workflows", list(text().into()), true),
                ("may_start", list(text().into()), true),
                (
                    "channels",
                    list(
                        object(&[
                            ("name", text().into(), true),
                            ("answers", yes_or_no().into(), true),
                        ])
                        .into(),
                    ),
                    true,
                ),
                ("flows", list(text().into()), true),
            ]),
        )
        .schema(
            "Run",
            object(&[
                ("id", text().into(), true),
                ("workflow", text().into(), true),
                ("state", text().enum_values(Some(states)).into(), true),
                ("records", number(0).into(), true),
                ("generation", number(0).into(), true),
                ("created_at", time(), true),
                ("updated_at", time(), true),
                ("finished_at", time(), false),
                ("wake_at", time(), false),
                ("waits_for", list(text().into()), false),
                ("not_before", time(), false),
                ("priority", priority().into(), true),
                (
                    "queued",
                    object(&[
                        ("limit", number(1).into(), false),
                        (
                            "rate",
                            object(&[
                                ("begins", number(1).into(), true),
                                (
                                    "interval",
                                    number(1).description(Some("Milliseconds.")).into(),
                                    true,
                                ),
                            ])
                            .into(),
                            false,
                        ),
                        ("key", text().into(), false),
                        ("ahead", number(0).into(), true),
                        ("not_before", time(), false),
                    ])
                    .into(),
                    false,
                ),
                (
                    "parked",
                    object(&[
                        ("reason", text().into(), true),
                        ("detail", text().into(), true),
                    ])
                    .into(),
                    false,
                ),
                (
                    "parent",
                    object(&[
                        ("id", text().into(), true),
                        ("location", text().into(), true),
                    ])
                    .into(),
                    false,
                ),
                ("progress", anything(), false),
            ]),
        )
        .schema(
            "Page",
            object(&[
                ("runs", list(named("Run")), true),
                ("next", text().into(), false),
            ]),
        )
        .schema(
            "Counts",
            object(&[
                ("runs", number(0).into(), true),
                ("states", numbers(), true),
                ("workflows", by_name(numbers()), true),
            ]),
        )
        .schema("Ended", ended(anything()))
        .schema("End", text().enum_values(Some(ends)))
        .schema(
            "Failure",
            object(&[
                ("kind", text().into(), true),
                ("location", text().into(), true),
                ("message", text().into(), true),
                ("attempts", number(0).into(), true),
                ("type_name", text().into(), false),
                ("chain", list(text().into()), false),
                ("value", anything(), false),
                ("branches", list(named("Failure")), false),
            ]),
        )
        .schema(
            "Record",
            object(&[
                ("seq", number(1).into(), true),
                ("at", time(), true),
                ("code", text().into(), true),
                ("location", list(anything()), false),
                ("body", anything(), true),
            ]),
        )
        .schema(
            "Records",
            object(&[
                ("id", text().into(), true),
                ("records", list(named("Record")), true),
                ("next", number(1).into(), false),
            ]),
        )
        .schema(
            "Letters",
            object(&[
                (
                    "letters",
                    list(
                        object(&[
                            ("message", object(&[]).into(), true),
                            ("reason", text().into(), true),
                            ("at", time(), true),
                        ])
                        .into(),
                    ),
                    true,
                ),
                ("next", number(1).into(), false),
            ]),
        )
        .schema(
            "History",
            object(&[
                ("format", number(1).into(), true),
                ("id", text().into(), true),
                ("records", list(named("Record")), true),
            ]),
        )
        .schema(
            "Found",
            object(&[
                ("field", maybe(text().into()), false),
                ("code", maybe(text().into()), false),
                ("text", text().into(), true),
            ]),
        )
        .schema(
            "View",
            object(&[
                ("id", text().into(), true),
                ("revision", number(0).into(), true),
                ("status", text().into(), true),
                ("state", anything(), true),
                ("at", maybe(text().into()), true),
                ("stages", list(object(&[]).into()), true),
                ("history", list(text().into()), true),
                ("completed", list(text().into()), true),
                ("skipped", list(text().into()), true),
                ("ahead", list(text().into()), true),
                ("problems", list(named("Found")), true),
                ("attempts", number(0).into(), true),
                ("failure", maybe(object(&[]).into()), true),
                ("actions", object(&[]).into(), true),
                ("operations", list(object(&[]).into()), true),
                ("orphans", list(object(&[]).into()), true),
                ("busy", yes_or_no().into(), true),
                ("nested", list(object(&[]).into()), true),
                ("durable", yes_or_no().into(), true),
                ("started_at", maybe(time()), true),
                ("completed_at", maybe(time()), true),
                ("events", list(anything()), true),
            ]),
        )
}

/// One of the events, as a client reads it.
fn event<const N: usize>(kinds: [&str; N]) -> ObjectBuilder {
    object(&[
        ("event", text().enum_values(Some(kinds)).into(), true),
        ("id", text().into(), false),
        ("data", text().into(), true),
    ])
}

fn ended(value: AnySchema) -> ObjectBuilder {
    object(&[
        ("id", text().into(), true),
        ("state", named("End"), true),
        ("value", value, false),
        ("failure", named("Failure"), false),
    ])
}

fn object(fields: &[(&str, AnySchema, bool)]) -> ObjectBuilder {
    let mut object = ObjectBuilder::new().schema_type(Type::Object);
    for (name, schema, required) in fields {
        object = object.property(*name, schema.clone());
        if *required {
            object = object.required(*name);
        }
    }
    object
}

/// An object that has no other fields.
fn closed(fields: &[(&str, AnySchema, bool)]) -> ObjectBuilder {
    object(fields).additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn yes_or_no() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

fn number(least: i64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(least))
}

/// An instant.
fn time() -> AnySchema {
    number(i64::MIN >> 1)
        .description(Some("Milliseconds since the Unix epoch."))
        .into()
}

/// A number that a client gives, as `asked` reads it.
fn counted() -> ObjectBuilder {
    number(0).maximum(Some(i64::try_from(Count::MAX).unwrap_or(i64::MAX)))
}

fn priority() -> ObjectBuilder {
    number(i32::MIN.into()).maximum(Some(i32::MAX))
}

/// An object of numbers that count.
fn numbers() -> AnySchema {
    by_name(number(0).into())
}

/// An object whose fields are names that are not known here.
fn by_name(of: AnySchema) -> AnySchema {
    let of = AdditionalProperties::RefOr(of);
    object(&[]).additional_properties(Some(of)).into()
}

fn list(of: AnySchema) -> AnySchema {
    AnySchema::T(Array::new(of).into())
}

fn maybe(schema: AnySchema) -> AnySchema {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(null).item(schema).into()
}

fn anything() -> AnySchema {
    ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .into()
}

fn named(name: &str) -> AnySchema {
    Ref::from_schema_name(name).into()
}
