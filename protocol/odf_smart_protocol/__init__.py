"""ODF's Smart Transfer Protocol, version 1: messages, batches of blocks, and what each of its four roles does.

No I/O: a shell reads and writes a WebSocket and objects over HTTP, the roles decide
(``spec/plug-ins/smart-transfer.md``).

::

    puller                        server
    PullRequest            ->
                           <-     PullResponse        the plan, or why there is none
    {}                     ->                         not sent when there is nothing new
                           <-     BlocksResponse
    ObjectsPullRequest     ->                         as often as needed, or never
                           <-     ObjectsPullResponse
    close 1000

    pusher                        server
    PushRequest            ->
                           <-     Answer              {"Ok":{}}
    PushBlocks             ->
                           <-     Answer
    ObjectsPushRequest     ->                         as often as needed, at least once
                           <-     ObjectsPushResponse
    PushProgress           ->                         as often as the pusher likes, "Complete" at last
                           <-     {}                  only to ask for progress
    {}                     ->
                           <-     {}                  accepted
    close 1000
"""
