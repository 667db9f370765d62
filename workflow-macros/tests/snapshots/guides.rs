#[allow(
    single_use_lifetimes,
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::must_use_candidate
)]
#[allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::type_complexity
)]
fn create<'__workflow>(
    flow: Flow<Bank>,
) -> workflow::Fragment<'__workflow, Result<(), Failure>> {
    const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(
        "WORKFLOW_LOCK"
    );
    workflow::__private::fragment(move |__workflow_cx: workflow::__private::Cx| workflow::__private::fut::<
        Result<(), Failure>,
    >(async move {
        let __workflow_cx = &__workflow_cx;
        #[step(__workflow_is_imported)]
        const _: () = ();
        let bank = guide!(
            @ site __workflow_cx & workflow::Site { name : "bank", kind :
            workflow::Kind::Call, path : "bank", file : ::core::file!(), line : 1 };
            Bank::default()
        )?;
        guide!(
            @ site __workflow_cx & workflow::Site { name : "again", kind :
            workflow::Kind::Call, path : "again", file : ::core::file!(), line : 1 };
            bank, flow = flow
        )?;
        {
            #[allow(unused_imports)]
            use workflow::__private::lookup::*;
            let __workflow_undo = unmake;
            let __workflow_body = || workflow::__private::fut(async {
                workflow::__private::Awaited(make(1))
                    .go(
                        __workflow_cx,
                        &workflow::Site {
                            name: "make",
                            kind: workflow::Kind::Step,
                            path: "make",
                            file: ::core::file!(),
                            line: 1,
                        },
                        workflow::__private::StepOptions::new(),
                    )
                    .await
            });
            let __workflow_step = workflow::__private::in_place(
                __workflow_cx,
                &workflow::Site {
                    name: "make",
                    kind: workflow::Kind::Step,
                    path: "make",
                    file: ::core::file!(),
                    line: 1,
                },
                workflow::__private::StepOptions::new(),
                &__workflow_body,
            );
            __workflow_step.undoes(&__workflow_undo);
            let __workflow_via = (&&&&&__workflow_step.tag()).via();
            __workflow_step.run(__workflow_via).await
        }?;
        Ok(())
    }))
}
