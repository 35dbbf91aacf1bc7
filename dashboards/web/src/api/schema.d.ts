// Generated from query/api/openapi.json: npm run generate.

export interface paths {
    "/api/v1/ask": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * a question that has a name
         * @description Asks a question by its name.
         */
        get: operations["query.Ask"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/can": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what a subject may do
         * @description Asks what a subject may do by RBAC, at a moment: everything, or with a verb and a resource or path, as of WhoCanRequest, that one request. A subject or a group is named. If the subject or the namespace is unknown but resembles a known one, or no binding names the group, the question is refused (404); of a subject unless groups are given.
         */
        get: operations["query.Can"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * which accesses became possible or impossible
         * @description Asks which accesses became possible and impossible from one moment to another, and by which writes. Without a subject it lists everybody whom changed objects concern, each alone: what comes by a group is listed under the group. An unknown subject is refused (404) or hinted at as by can.
         */
        get: operations["query.Changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/classes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what outcomes and classes mean
         * @description Asks what outcomes and classes mean.
         */
        get: operations["query.Classes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the clusters there are
         * @description Asks which clusters there are.
         */
        get: operations["query.Clusters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * names that begin with a text, or contain it
         * @description Asks which names of a kind begin with a text, or contain it, in any case: those that begin with it come first, then those that requests have most often. They come from what is counted of requests and from the policy as last known; no event is read. Long tails of paths are folded to *, and objects' names are those of the events that are kept.
         */
        get: operations["query.Complete"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/completeness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what apiservers sent and what of it is missing
         * @description Asks what the apiservers of a cluster sent and what of it is missing.
         */
        get: operations["query.Completeness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connection": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the progress of a cluster's connection
         * @description Asks the progress of a cluster's connection. Its steps, in this order, are done when: registered, a certificate or token of it is accepted; connected, an apiserver posted with it in the last 5 minutes, and was not refused since (with several processes also when others store its events); first-event, an event of it is stored, imported ones too; state, it is known which roles and bindings there are; coverage, of the newest hour's judged requests at most 10 % wait for a state or for the content of objects; followed, a follower of its audit log posted in the last 5 minutes (left out by a process that receives nothing); counted, the counters of each of its apiservers that are to be read were. A step that failed may succeed later; nothing here is final.
         */
        get: operations["doctor.Connection"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/dangers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * who holds what is dangerous, and whether it is used
         * @description Asks who holds what is dangerous, by which bindings, and whether it is used: rights that lead to more rights, and those to read secrets. A subject stands in it for each danger and scope; whoever holds cluster-admin holds the others as well, and is listed under that alone.
         */
        get: operations["query.Dangers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the health of the installation, and of every cluster
         * @description Asks the health of the installation, and of every cluster, or the one that is named. Several checks may have one id. Of the installation: server, store, key-file, certificates, listener, lag, policy-lag, dead-letters, folded, disk, retention, stream; of a cluster: the steps of connection, certificate, watch, apiserver-config (whether it is known, its digest, what is missing), policy-known (roles and bindings whose content is not known: fail when no refusal is certain), version (of its apiservers, by their own requests), cache-lag (where it was learnt), clock, audit-policy, completeness (in place of the step counted), aggregated.
         */
        get: operations["doctor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/drained": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * wait until everything accepted is stored
         * @description Waits until everything that was accepted before it is stored.
         */
        get: operations["query.Drained"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/drift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what does not match, by likely cause
         * @description Asks for what does not match, by likely cause.
         */
        get: operations["query.Drift"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/escalations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * who can become cluster administrator, and how
         * @description Asks who can make itself cluster administrator or a member of system:masters, at a moment. Without a subject and a group, it lists everybody who can, each by the shortest path; with them, that subject's shortest paths to both goals and to everybody else.
         */
        get: operations["query.Escalations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * requests with their verdicts
         * @description Asks for requests with their verdicts, newest first, one a request.
         */
        get: operations["query.Events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/explain-deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * why requests were refused
         * @description Asks why the requests of an audit ID were refused.
         */
        get: operations["query.ExplainDeny"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * which values requests have, and how often
         * @description Asks which values the requests that filters select have, by keys, most requests first. Filters are those of events. At most the newest two million events of a range are counted, unless keys and filters are about decision, replayed, outcome and class alone.
         */
        get: operations["query.Facets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/findings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what detections found
         * @description Asks what detections found, by the first request of each, newest first.
         */
        get: operations["query.Findings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/first-uses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what was done for the first time
         * @description Asks what was done for the first time in a range, and which bindings were used for the first time, against everything that is stored from before.
         */
        get: operations["query.FirstUses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/histogram": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * how many requests there were, step by step
         * @description Asks how many requests that filters select there were, step by step, in all or by the most frequent values of a key. Filters are those of events. What is counted of a range is as of facets.
         */
        get: operations["query.Histogram"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hygiene": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what is idle or wrong in a policy
         * @description Asks what is idle or wrong in the roles and bindings of a cluster, at a moment.
         */
        get: operations["query.Hygiene"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the life of credentials
         * @description Asks for the life of one credential, or of those of a subject. 404 when nothing is known of it.
         */
        get: operations["query.Lineage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * a range of time, summed up
         * @description Asks for a range of time, summed up. Up to two hours the sums are exact to the instant; longer ranges are widened to whole minutes.
         */
        get: operations["query.Overview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policy-changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what was written to the policy, and what came of it
         * @description Asks what was written to roles and bindings: when, by whom, and whether it changed what anybody can do. With the audit ID of a write it says of that what was gained and lost, which requests were refused for it, what was asked for the first time in the hour after, and how to take it back. Refused and dry-run writes change nothing; refused ones are not listed.
         */
        get: operations["query.PolicyChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query-log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * who asked what
         * @description Asks who asked what of the store, newest first. Every question about what somebody did is recorded within two seconds; classes, clusters, connection, doctor, drained, rules and status are not.
         */
        get: operations["query.QueryLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what was refused, and why
         * @description Asks which requests were refused in a range, by subject, verb and resource, and for what cause; and which writes of roles and bindings made refusals. When a request was still allowed is asked of RBAC as it was at every change since the cluster's first stored request, or since the last 20,000 moments at which something changed.
         */
        get: operations["query.Refusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/rejudge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the jobs that judge again
         * @description Asks for the jobs that judged stored requests again.
         */
        get: operations["query.RejudgeJobs"];
        put?: never;
        /**
         * judge stored requests again
         * @description Starts judging stored requests again. The same request returns the job under way; a different one is refused meanwhile.
         */
        post: operations["query.Rejudge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the rules that detect
         * @description Asks for the rules the server detects with.
         */
        get: operations["query.Rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * how far the replay is behind
         * @description Asks how far the replay is behind.
         */
        get: operations["query.Status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/subject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * what a subject did, could do and never did
         * @description Asks what a subject did, could do and never did. The sums are of whole days. 404 when nothing is stored of it in the range and no binding names it.
         */
        get: operations["query.Subject"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/suggest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * the least roles that subjects need
         * @description Asks what subjects need, and which change leaves them no more: docs/suggest.md. It names subjects, a namespace, a group, a role or a binding, or asks for all. Without from and to everything counts that was ever counted, also after its events are past retention; a range, strict and backtest read the events that are stored. One answer is made at a time, in ten minutes at most (503, 504). 400 for a subject of Kubernetes itself unless includeSystem is set; 404 for an unknown subject (the text names the nearest), a cluster whose policy was never listed, and a range without requests.
         */
        get: operations["query.Suggest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/whatif": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * what a draft of roles and bindings would refuse and allow
         * @description Asks what a draft of roles and bindings would refuse and allow of what was recorded, before anybody applies it: docs/whatif.md. It is asked by POST, with a JSON object of at most 4 MiB, and changes nothing. One answer is made at a time, in ten minutes at most (503, 504). 400 for a draft that cannot be read (the text has file and line) and an object to delete that does not exist; 404 for an unknown subject (the text names the nearest), a cluster whose policy was never listed, and a range without requests.
         */
        post: operations["query.WhatIf"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/who-can": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * who may make a request
         * @description Asks whom RBAC grants a request at a moment: every user, group and service account, with every grant. It names either a resource or a path. An unknown resource without a group, a resource that rules name in several groups, and a misspelt verb are refused (400): the answer would be to another question, as is a namespace that is not there and is spelt much like another (404). The group system:masters is always in the answer, with a grant of kind superuser that has no binding and no role.
         */
        get: operations["query.WhoCan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * everything about the requests of an audit ID
         * @description Asks for everything about the requests of an audit ID. Clients choose audit IDs and may use one again, so the answer is a list.
         */
        get: operations["query.Why"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description which accesses a write made possible and impossible, as of changes between the moments around it. */
        AccessChange: {
            /** @description false: any number of unknown bindings may have existed at either moment */
            known: boolean;
            /** @description what was not known at the second moment */
            missingAfter: string[];
            /** @description what was not known at the first moment */
            missingBefore: string[];
            /** @description subjects beyond those */
            more: number;
            /** @description 500 at most */
            subjects: components["schemas"]["ChangedSubject"][];
        };
        /** @description Advice says what to supply next, so that more requests get a certain verdict. */
        Advice: {
            /** @description of the verdicts that wait */
            class: string;
            /** @description for a shell */
            command?: string;
            /** @description what exactly, most wanted first */
            missing: components["schemas"]["Lack"][];
            /** @description that wait for it */
            requests: number;
            /** @description what to supply, and why */
            text: string;
            /** @description what to supply, in a few words */
            title: string;
        };
        /** @description a rule a subject has that lacks one thing. */
        Almost: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /** @description `kind` is "superuser" for what needs no grant: membership of system:masters. The rest of it is empty then. */
            kind?: string;
            /** @description verb, name, subresource, group, namespace */
            lacks: string;
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
            /** @description `verbs` of a merged rule that this grant gives; left out when it gives them all. */
            verbs?: string[];
        };
        /** @description the answer to a question by name. */
        AskAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /** @description their names */
            columns: string[];
            /** @description its name */
            question: string;
            /** @description texts, numbers, and times in RFC 3339 */
            rows: Record<string, never>[][];
        };
        /** @description Asked says who asked what in a minute, and how it ended. */
        Asked: {
            /** @description where from */
            address?: string;
            /** @description of all answers of that minute */
            bytes: number;
            /** @description who asked: a user of this machine, or what is known of whoever holds the token */
            caller: string;
            /** @description how often in that minute */
            count: number;
            /** @description parameters, or the statement */
            detail: string;
            /** @description page, socket, sql, or direct */
            door: string;
            /**
             * Format: date-time
             * @description in which it was asked
             */
            minute: string;
            /** @description its name, or sql */
            question: string;
            /** @description that all of them took */
            seconds: number;
            /** @description ok, refused, failed */
            status: string;
        };
        /** @description what one authenticator says of an identity. */
        AuthnAnswer: {
            /** @description one of the By constants */
            authenticator: string;
            /** @description nothing unknown could change that */
            certain: boolean;
            /** @description `possible` says that it can have produced the identity; Certain, that it produces just this one. */
            possible: boolean;
            /** @description `why` says why it cannot, or begins with "not-evaluable:" and says what would tell; empty when it is certain. */
            why?: string;
        };
        /** @description a role that a step binds or rewrites, and where it is held. */
        BoundRole: {
            /** @description where it is held; "" is the whole cluster */
            namespace: string;
            /** @description Kind/name or Kind/namespace/name */
            role: string;
        };
        /** @description Bucket counts the requests of a stretch of time, once by recorded decision and once by outcome. */
        Bucket: {
            /** @description requests by recorded decision */
            allow: number;
            /** @description requests of this outcome */
            ambiguous: number;
            /** @description requests of this outcome */
            drift: number;
            /** @description requests by recorded decision */
            forbid: number;
            /** @description requests of this outcome */
            indeterminate: number;
            /** @description events that are later stages of requests counted before */
            later: number;
            /** @description requests by outcome */
            match: number;
            /** @description requests without a recorded decision */
            none: number;
            /** @description requests of this outcome */
            not_judged: number;
            /**
             * Format: date-time
             * @description begin
             */
            t: string;
        };
        /** @description everything a subject may do. */
        CanAnswer: {
            /**
             * Format: date-time
             * @description `at` is the moment asked about, or when the newest known change was done; null when no change is known.
             */
            at: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description groups of the subject */
            groups: string[];
            /** @description `groupsFrom` is "requests": those its requests carried the last time, at GroupsSeen; "asked": the question's; "name": what its name alone gives it; "unknown": its requests came with more sets of groups than are told apart, and which were the last is not known. What the name gives is always among them. */
            groupsFrom: string;
            /**
             * Format: date-time
             * @description when its requests carried them
             */
            groupsSeen?: string;
            /** @description what may be wrong with the question */
            hints?: string[];
            /** @description `known` is false when any number of unknown bindings may exist. */
            known: boolean;
            /** @description `missing` names what is not known and could add to the answer. */
            missing: string[];
            /** @description `near` are subjects that a stranger's name may have been meant for, three at most. */
            near?: string[];
            /** @description `request` is what was asked about, null when that is everything; Scopes are empty then. */
            request?: components["schemas"]["Decision"];
            /** @description those in which it holds something */
            scopes: components["schemas"]["Scope"][];
            /** @description `stranger` says that no request of the subject is stored and no binding names it: it may do what anybody of such a name may. */
            stranger?: boolean;
            /** @description `subject` is a user name, "" when only groups are asked about. */
            subject: string;
            /** @description in system:masters: may do everything, whatever the rules */
            superuser: boolean;
        };
        /** @description a rule that was gained, by grants as they are now, or lost, by those there were. */
        ChangedRule: {
            /** @description as RBAC has them */
            apiGroups?: string[];
            /** @description `because` are the changed objects among the grants' bindings and roles. */
            because: string[];
            /** @description grants it comes from */
            by: components["schemas"]["Grant"][];
            /** @description `except` has rules of the other side: what they allow did not change. */
            except?: components["schemas"]["Rule"][];
            /** @description as RBAC has them; RoleBindings never give any */
            nonResourceURLs?: string[];
            /** @description as RBAC has them */
            resourceNames?: string[];
            /** @description as RBAC has them */
            resources?: string[];
            /** @description as RBAC has them */
            verbs: string[];
        };
        /** @description what changed in one scope. */
        ChangedScope: {
            /** @description rules, with the grants as they are now */
            gained: components["schemas"]["ChangedRule"][];
            /** @description rules, with the grants there were */
            lost: components["schemas"]["ChangedRule"][];
            /** @description `namespace` "" is the whole cluster, all namespaces but those that have a scope of their own: in these it is as they say. */
            namespace: string;
            /** @description TooLarge: the rules take too much work to compare; there may be more of either. */
            tooLarge?: boolean;
        };
        /** @description a subject and what changed for it: what its name alone gives or, of a group, what being in it gives; of the subject asked about, what it holds with all its groups. */
        ChangedSubject: {
            /** @description User, Group, ServiceAccount */
            kind: string;
            /** @description name of the object */
            name: string;
            /** @description of a service account */
            namespace: string;
            /** @description those in which something changed */
            scopes: components["schemas"]["ChangedScope"][];
        };
        /** @description which accesses became possible and impossible between two moments. */
        ChangesAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            /** @description groups of the subject */
            groups?: string[];
            /** @description where they come from: asked, requests, name */
            groupsFrom?: string;
            /**
             * Format: date-time
             * @description when its requests carried them
             */
            groupsSeen?: string;
            /** @description `hints` says what may be wrong with the question. */
            hints?: string[];
            /** @description `known` is false when any number of unknown bindings may have existed at one of the two moments. MissingBefore and MissingAfter name what was not known at each. */
            known: boolean;
            /** @description what was not known at the second moment */
            missingAfter: string[];
            /** @description what was not known at the first moment */
            missingBefore: string[];
            /** @description `more` is how many subjects there are beyond those. */
            more: number;
            /** @description how many are left out */
            moreWrites: number;
            /**
             * Format: date-time
             * @description `newest` is when the newest known change was, if it is before From and To was not given.
             */
            newest?: string;
            /** @description `reasons` say why, by the names in either, of the first of them. */
            reasons?: {
                [key: string]: string;
            };
            /** @description `subject` and its groups are those asked about, as in CanAnswer; empty for all. */
            subject: string;
            /** @description 500 at most */
            subjects: components["schemas"]["ChangedSubject"][];
            /** @description in system:masters: nothing changes for it */
            superuser?: boolean;
            /**
             * Format: date-time
             * @description `to` is null when the newest known was meant and no change after From is known.
             */
            to: string;
            /** @description `writes` says what happened, between the two moments, to the objects that made the difference, oldest first. MoreWrites counts those left out. */
            writes: components["schemas"]["PolicyWrite"][];
        };
        /** @description ClassCount counts the requests of a class. */
        ClassCount: {
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description of requests */
            count: number;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description what the class means */
            text: string;
        };
        /** @description ClassMeaning says what a class of verdicts means. */
        ClassMeaning: {
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description in one line */
            text: string;
        };
        /** @description ClassesAnswer says what outcomes and classes mean: closed sets, the same for every cluster. */
        ClassesAnswer: {
            /** @description each with its meaning */
            classes: components["schemas"]["ClassMeaning"][];
            /** @description each with its meaning */
            outcomes: components["schemas"]["OutcomeMeaning"][];
        };
        /** @description a cluster with events. */
        Cluster: {
            /** @description a count of events, not of requests */
            events: number;
            /**
             * Format: date-time
             * @description whole minutes that enclose the requests, fit for from and to
             */
            first: string;
            /**
             * Format: date-time
             * @description as first
             */
            last: string;
            /** @description name of the object */
            name: string;
        };
        /** @description ClustersAnswer lists the clusters of which anything is known. */
        ClustersAnswer: {
            /** @description those there are events of */
            clusters: components["schemas"]["Cluster"][];
            /** @description `quiet` are clusters whose objects are known and which have no events. */
            quiet?: string[];
        };
        /** @description values that begin with a text, or contain it. */
        CompleteAnswer: {
            /** @description of the values */
            kind: string;
            /** @description there are more */
            more: boolean;
            /** @description the most likely first */
            values: components["schemas"]["CompletedValue"][];
        };
        /** @description a value and what is known of it. */
        CompletedValue: {
            /** @description of a subject, role or binding; the outcome of a class */
            kind?: string;
            /** @description `requests` counts those that have it, whenever they were made; of a cluster its events. 0 for what the policy alone names, and for kinds that are not counted. */
            requests: number;
            /** @description the name */
            value: string;
        };
        /** @description a stretch of time in which events are missing. */
        CompletenessGap: {
            /**
             * Format: date-time
             * @description what came after, or was so after
             */
            after?: string;
            /** @description how many at most */
            atMost: number;
            /**
             * Format: date-time
             * @description `before` and After are the events received around the longest pause in it: the missing requests ended between them.
             */
            before?: string;
            /** @description what lies behind it */
            cause: string;
            /**
             * Format: date-time
             * @description `from` and To are readings: the missing events were made between them.
             */
            from: string;
            /** @description at least */
            missing: number;
            /** @description in one line */
            text: string;
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
        };
        /** @description a request of which a stage is missing. */
        CompletenessHalf: {
            /** @description name of the apiserver */
            apiserver?: string;
            /** @description audit ID of the request */
            auditID: string;
            /** @description what is not known, or not held */
            missing: string;
            /**
             * Format: date-time
             * @description when the request arrived
             */
            received: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description user name */
            user: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description what the webhook backend of an apiserver lost between two readings. */
        CompletenessLoss: {
            /** @description `arrived` counts those that arrived from a log instead, the last of them at ArrivedBy. */
            arrived: number;
            /**
             * Format: date-time
             * @description when the last of them had arrived
             */
            arrivedBy?: string;
            /** @description what lies behind it */
            cause: string;
            /** @description how many */
            events: number;
            /**
             * Format: date-time
             * @description the readings
             */
            from: string;
            /** @description in one line */
            text: string;
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
            /** @description `unwritten` counts those that the log backend could not write either. */
            unwritten?: number;
        };
        /** @description Measured compares what an apiserver counted with what is stored. */
        CompletenessMeasured: {
            /** @description how many at most */
            atMost: number;
            /** @description events that found its buffer full */
            bufferErrors: number;
            /** @description `deadLetters` counts the missing events that arrived and could not be read; an upper bound if the cluster has several apiservers. */
            deadLetters: number;
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            /** @description stretches in which something is missing */
            gaps?: components["schemas"]["CompletenessGap"][];
            /** @description events its log backend could not write */
            logErrors: number;
            /** @description `losses` are what its webhook backend lost, the newest fifty, whether or not it arrived another way. */
            losses?: components["schemas"]["CompletenessLoss"][];
            /** @description at least */
            missing: number;
            /** @description of the same time, at most Sent */
            received: number;
            /** @description dropped by it, but stored from a log */
            recovered: number;
            /** @description requests refused because they could not be audited */
            rejected: number;
            /** @description how often it began anew */
            restarts: number;
            /** @description passed to its audit backends */
            sent: number;
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
            /** @description between the last reading of a process and the next one's start */
            unmeasuredSeconds: number;
            /** @description events its webhook backend dropped */
            webhookErrors: number;
        };
        /** @description Pairs counts the requests of which only one stage is known. */
        CompletenessPairs: {
            /** @description `examples` are the first that are missing a stage they must have had. */
            examples?: components["schemas"]["CompletenessHalf"][];
            /** @description other requests that began and whose end never came */
            noAnswer: number;
            /** @description watches that ended and whose beginning never came */
            noStart: number;
            /** @description watches and streams that may still be under way */
            open: number;
            /** @description ended by their own time limit, and the end never came */
            overdue: number;
            /** @description ended by the end of their apiserver, which does not post them */
            stopped: number;
        };
        /** @description something that is wrong. */
        CompletenessProblem: {
            /** @description name of the apiserver */
            apiserver?: string;
            /** @description kind of the object */
            kind: string;
            /** @description how grave it is */
            severity: string;
            /** @description in one line */
            text: string;
            /** @description what to do, several lines, commands among them */
            todo?: string;
        };
        /** @description Report answers a Question. */
        CompletenessReport: {
            /** @description each by its name */
            apiservers: components["schemas"]["CompletenessServer"][];
            /** @description name of the cluster */
            cluster: string;
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            pairs: components["schemas"]["CompletenessPairs"];
            /** @description the gravest first */
            problems: components["schemas"]["CompletenessProblem"][];
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
            volume: components["schemas"]["CompletenessVolume"];
        };
        /** @description one apiserver, or all that do not send a name (empty name). */
        CompletenessServer: {
            /** @description arrived in the range */
            events: number;
            /**
             * Format: date-time
             * @description when it posted last
             */
            lastPost?: string;
            /** @description of them from a log first */
            log: number;
            /** @description absent: its metrics are not known */
            measured?: components["schemas"]["CompletenessMeasured"];
            /** @description name of the object */
            name: string;
            /** @description how many */
            posts: number;
            /** @description Silent is for how many seconds it has sent nothing, if that is longer than usual. */
            silentSeconds?: number;
            /** @description absent: the only apiserver, or nothing is usual yet */
            volume?: components["schemas"]["CompletenessVolume"];
            /** @description of them by webhook first */
            webhook: number;
        };
        /** @description Volume compares the events of the newest half hour with what is usual. */
        CompletenessVolume: {
            /** @description grants it comes from */
            by?: string;
            /** @description events an hour, of the newest half */
            hourly: number;
            /** @description 0: not known */
            usual: number;
        };
        /** @description one credential: where it came from and what it was used for. */
        Credential: {
            /** @description in its use */
            contradictions?: components["schemas"]["CredentialContradiction"][];
            /** @description `credential` is "JTI=<id>", "X509SHA256=<fingerprint>" or "Secret=<namespace>/<name>"; "" stands for all requests whose events do not tell. */
            credential: string;
            /** @description authenticators that take it */
            explained?: string[];
            /**
             * Format: date-time
             * @description use
             */
            first?: string;
            /** @description requests of those that the apiserver refused */
            forbidden: number;
            /** @description `issue` says how it was made, null when no recorded request shows it. */
            issue: components["schemas"]["Issue"];
            /**
             * Format: date-time
             * @description use
             */
            last?: string;
            /** @description `more` counts the places of use left out; -1 says that there are some. */
            more?: number;
            /** @description 0 for a token that was issued and never used */
            requests: number;
            /** @description more than one only when something is wrong */
            users: string[];
            /** @description where it was used from; 200 at most */
            uses: components["schemas"]["CredentialUse"][];
        };
        /** @description what contradicts itself in the use of a credential. */
        CredentialContradiction: {
            /** @description what shows it */
            evidence: string;
            /** @description name of the object */
            name: string;
        };
        /** @description a place a credential was used from. */
        CredentialUse: {
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /** @description address */
            from: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description name of the node */
            node?: string;
            /** @description name of the pod */
            pod?: string;
            /** @description how many */
            requests: number;
            /** @description user name */
            user?: string;
            /** @description client, by its own word */
            userAgent: string;
        };
        /** @description a kind of danger. */
        Danger: {
            /** @description ways to more rights that take it, as in docs/escalations.md */
            edges: string[];
            /** @description how many hold it, those beyond the answer included */
            holders: number;
            /** @description the same every time */
            id: string;
            /** @description what it lets somebody do */
            text: string;
            /** @description holders of those that never used it */
            unused: number;
        };
        /** @description a grant that gives a danger. */
        DangerGrant: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /** @description of the objects it is restricted to; none: all */
            names?: string[];
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
        };
        /** @description a subject of a binding that holds a danger. What is held by being in a group stands under the group. */
        DangerHolder: {
            /** @description id of the danger */
            danger: string;
            /** @description the same of all that are stored */
            ever: number;
            /** @description all that give it there */
            grants: components["schemas"]["DangerGrant"][];
            /** @description User, Group, ServiceAccount */
            kind: string;
            /**
             * Format: date-time
             * @description `last` is when it was last used, by what was known when the request was stored; null: never.
             */
            last: string;
            /** @description of the subject */
            name: string;
            /** @description of a service account */
            namespace: string;
            /** @description `requests` counts those that were made by these grants and are what the danger is about, and checks behind requests, in the days of the range. A request that several grants allow counts for each. */
            requests: number;
            /** @description namespace it holds in; "" is the whole cluster */
            scope: string;
            /** @description every binding that gives it is Kubernetes' own, or it is the group system:masters */
            system: boolean;
            /** @description `users` are some of those who used it, by themselves or as members of the group. */
            users: string[];
        };
        /** @description DangersAnswer says who holds what is dangerous, and whether it is used. */
        DangersAnswer: {
            /**
             * Format: date-time
             * @description `at` is the moment asked about, or when the newest known change was done; null when no change is known.
             */
            at: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description all kinds there are, the worst first */
            dangers: components["schemas"]["Danger"][];
            /** @description the worst first, each for each danger and scope */
            holders: components["schemas"]["DangerHolder"][];
            /** @description `known` is false when any number of unknown bindings may exist. */
            known: boolean;
            /** @description `missing` names what is not known and could add to the answer. */
            missing: string[];
            /** @description `more` counts holders beyond those of the answer. */
            more: number;
            /**
             * Format: date-time
             * @description `since` is the cluster's first stored request: what was never used was not used since. Null when nothing is stored.
             */
            since: string;
            /** @description `system` counts holders left out because their binding belongs to Kubernetes itself, or because they are the group system:masters: its members may do everything without a binding, and so never use one. */
            system: number;
        };
        /** @description Decided counts requests by recorded and replayed decision. */
        Decided: {
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description how many */
            requests: number;
        };
        /** @description Decision says whether a subject may make one request. */
        Decision: {
            /** @description in any namespace */
            allNamespaces: boolean;
            /** @description `allowed` is "yes", "no", or "unknown" when nothing known allows it and not everything is known. */
            allowed: string;
            /** @description `bind` says whether it may bind the role, when that was asked. */
            bind?: components["schemas"]["MayBind"];
            /** @description all that allow it */
            grants: components["schemas"]["Grant"][];
            /** @description API group; "" is the core group */
            group: string;
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description `nearest` says what would have allowed it; null when it is allowed. */
            nearest?: components["schemas"]["NearestMiss"];
            /** @description of a request about no resource */
            path: string;
            /** @description plural name */
            resource: string;
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description a request decided by the policy of another time. */
        DecisionAt: {
            /** @description the one that decided */
            authorizer: string;
            /** @description roles that do not exist */
            errors?: string[];
            /** @description all that allow it */
            grants: components["schemas"]["VerdictGrantLine"][];
            /** @description where there is one */
            impersonation?: components["schemas"]["VerdictImpersonationLine"];
            /** @description what is not known, or not held */
            missing?: string[];
            /** @description decision of the replica; none: not known */
            replayed: string;
            /**
             * Format: date-time
             * @description moment
             */
            time: string;
        };
        /** @description one request: who refused it, and what would have allowed it. */
        Denial: {
            /** @description the user it impersonated */
            actingAs?: string;
            /** @description name of the apiserver */
            apiserver?: string;
            /**
             * Format: date-time
             * @description `at` is the moment whose policy and configuration the rest is about: the request's own, unless another was asked for. Replayed is the replica's decision then.
             */
            at: string;
            /** @description audit ID of the request */
            auditID: string;
            /** @description `by` is what refused it, a closed set; Text says it in one line. */
            by: string;
            /** @description `chain` has the authorizers in their order, each with what it would have needed; empty when nobody was authenticated. */
            chain: components["schemas"]["Shortfall"][];
            /** @description `checks` are the checks that refused it: behind the authorization filter, or of impersonation. */
            checks: components["schemas"]["DeniedCheck"][];
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description of the response */
            code: number;
            /** @description those it was authorized with */
            groups: string[];
            /** @description `identity` says what contradicts the identity, or what a failed authentication shows. */
            identity: string[];
            /** @description of the response */
            message?: string;
            /** @description `missing` is what is not known and could change the answer. */
            missing: string[];
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description `plugin` is the admission plugin that refused it. */
            plugin?: string;
            /** @description `pluginName` is the policy, webhook or quota of the plugin that refused it, where the response names it. */
            pluginName?: string;
            /**
             * Format: date-time
             * @description when the request arrived
             */
            received: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description identity of the request */
            request?: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description By in one line */
            text: string;
            /** @description who made it */
            user: string;
            /** @description verb of the request */
            verb: string;
            /** @description the outcome; the name will be removed in the next release */
            verdict: string;
        };
        /** @description a check that was refused. */
        DeniedCheck: {
            /** @description the request it is about, in words */
            asked: string;
            /** @description its name, as in docs/implied.md */
            check: string;
            /** @description `missing` is what is not held, or not known. */
            missing: string[];
            /** @description what would have let it pass */
            nearest?: components["schemas"]["NearestMiss"];
            /** @description decision of the replica */
            replayed: string;
            /** @description who was asked about */
            user: string;
        };
        /** @description one request of a finding: enough to find it again, and nothing of its bodies or query. */
        DetectEvidence: {
            /** @description audit ID of the request */
            auditID: string;
            /** @description request key, 32 hexadecimal digits */
            request: string;
            /** @description in one line */
            text: string;
            /**
             * Format: date-time
             * @description moment
             */
            time: string;
        };
        /** @description what a rule found in one window. Findings with the same ID are the same finding. */
        DetectFinding: {
            /** @description MITRE ATT&CK techniques */
            attack: string[];
            /** @description name of the cluster */
            cluster: string;
            /** @description requests */
            count: number;
            /** @description the earliest requests, at most five */
            evidence: components["schemas"]["DetectEvidence"][];
            /**
             * Format: date-time
             * @description `first` and Last are the times of the earliest and latest request counted.
             */
            first: string;
            /** @description 32 hexadecimal digits, of cluster, rule, group and window */
            id: string;
            /** @description `keys` is how many first-seen keys of a day it tells of together, when there are more than are told one by one; absent from all other findings. */
            keys?: number;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description index of the rule in the role */
            rule: string;
            /** @description how grave it is */
            severity: string;
            /** @description requestor of the earliest request, or whom the rule names; chosen by clients, like all text below */
            subject: string;
            /** @description one line: the earliest request, and the number of others */
            text: string;
            /** @description in a few words */
            title: string;
            /**
             * Format: date-time
             * @description `window` is the start of the stretch of time the finding is about: of a rule's fold, or of the hour in which a key was first seen.
             */
            window: string;
        };
        /** @description a rule that findings come from. */
        DetectionRule: {
            /** @description MITRE ATT&CK techniques */
            attack: string[];
            /** @description what it looks for, and why */
            description: string;
            /** @description identity, the same every time */
            id: string;
            /** @description event, window, first-seen */
            kind: string;
            /** @description info, low, medium, high, critical */
            severity: string;
            /** @description in a few words */
            title: string;
        };
        /** @description Accepted counts what a cluster posted and the receiver took. */
        DoctorAccepted: {
            /** @description how many */
            events: number;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description how many */
            posts: number;
            /** @description address of the last */
            remote: string;
        };
        /** @description Answer reports the health of the installation. */
        DoctorAnswer: {
            /** @description of the installation, then of each cluster */
            checks: components["schemas"]["DoctorCheck"][];
            /** @description nothing is known of the cluster that was named */
            unknown?: boolean;
            /** @description of the server */
            version: string;
        };
        /** @description the result of one check. */
        DoctorCheck: {
            /** @description absent: of the whole installation */
            cluster?: string;
            /** @description identity, the same every time */
            id: string;
            /** @description ok, warn, fail */
            state: string;
            /** @description in one line */
            text: string;
            /** @description what to do, several lines, commands among them */
            todo?: string;
        };
        /** @description ConnectionAnswer reports how far a cluster's connection is. */
        DoctorConnectionAnswer: {
            /** @description since the server started */
            accepted?: components["schemas"]["DoctorAccepted"];
            /** @description name of the cluster */
            cluster: string;
            /** @description the listener and its certificate */
            receiver: components["schemas"]["DoctorReceiver"];
            /** @description the latest first */
            refused: components["schemas"]["DoctorRefusal"][];
            /** @description in their order */
            steps: components["schemas"]["DoctorStep"][];
        };
        /** @description Receiver describes the webhook's listener and its certificate. */
        DoctorReceiver: {
            /**
             * Format: date-time
             * @description when the certificate does
             */
            expires?: string;
            /** @description address */
            listen?: string;
            /** @description the certificate's */
            names?: string[];
            /** @description it does */
            serving: boolean;
            /**
             * Format: date-time
             * @description accepted and refused count from then
             */
            since?: string;
        };
        /** @description a kind of post the receiver refused. */
        DoctorRefusal: {
            /** @description absent: the cluster is not known */
            cluster?: string;
            /** @description how many */
            count: number;
            /** @description what was said */
            detail: string;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description for a handshake unknown-authority, certificate-expired, receiver-not-trusted, not-tls, handshake; else as in retrial_webhook_refused_requests_total */
            reason: string;
            /** @description address */
            remote: string;
        };
        /** @description one step of a connection. */
        DoctorStep: {
            /** @description identity, the same every time */
            id: string;
            /** @description done, waiting, failed */
            state: string;
            /** @description how it is */
            text: string;
            /** @description what the step is */
            title: string;
            /** @description what to do, several lines, commands among them */
            todo?: string;
        };
        /** @description Doings says what a subject did, could do and never did. */
        Doings: {
            /** @description name of the cluster */
            cluster: string;
            /** @description requests of those */
            drift: number;
            /**
             * Format: date-time
             * @description null without requests
             */
            first: string;
            /** @description requests that usage counts as (other) */
            folded: number;
            /** @description requests of those */
            forbidden: number;
            /** @description sets it was seen with */
            groups: string[][];
            /** @description `groupsFrom` is "requests", or "name" when there are none: what its name alone gives it. */
            groupsFrom: string;
            /** @description Rules are what its bindings and those of its groups give it, with how often each was used; Known is false when the policy is not known. */
            known: boolean;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description there are more uses */
            more: boolean;
            /** @description there are more rules than the 1,000 of the answer */
            moreRules: boolean;
            /** @description `otherGroups` counts requests with further sets, which are not told apart. */
            otherGroups?: number;
            /** @description of the range; 0 and null without any */
            requests: number;
            /** @description its own and the unused first, 1,000 at most */
            rules: components["schemas"]["SubjectRule"][];
            /** @description who it is about */
            subject: string;
            /** @description `untold` counts requests of subjects that are not told apart on the days of the range: some may be this one's. */
            untold?: number;
            /** @description distinct things it asked for, most requests first, 1,000 at most */
            usage: components["schemas"]["SubjectUse"][];
            /** @description the subject; the name will be removed in the next release */
            user: string;
        };
        /** @description empty: that it arrives says that everything is stored. */
        DrainedAnswer: Record<string, never>;
        /** @description what does not match, by likely cause. */
        DriftAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /** @description groups of the subject */
            groups: components["schemas"]["DriftGroup"][];
            /** @description requests that were compared with the replica */
            judged: number;
            /** @description `requests` counts all requests of that time, Judged those compared with the replica. If Judged is 0, the absence of groups means nothing. */
            requests: number;
            /** @description `truncated` says that the answer does not hold everything. */
            truncated?: boolean;
        };
        /** @description a likely cause, and what to give Retrial to settle it. */
        DriftCause: {
            /** @description what would settle it */
            give: string;
            /** @description kind of the object */
            kind: string;
            /** @description evidence for it */
            why: string;
        };
        /** @description one request of a group. */
        DriftExample: {
            /**
             * Format: date-time
             * @description moment
             */
            at: string;
            /** @description audit ID of the request */
            auditID: string;
            /** @description what lies behind it */
            cause: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description who it is about */
            subject: string;
            /** @description the subject; the name will be removed in the next release */
            user: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description what drifts for one reason. */
        DriftGroup: {
            /** @description `about` is the object, or what is missing, that the requests have in common; "" if they share the class alone. */
            about?: string;
            /** @description name of the apiserver */
            apiserver?: string;
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description how many */
            count: number;
            /** @description the earliest */
            examples: components["schemas"]["DriftExample"][];
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description most likely first */
            likely: components["schemas"]["DriftCause"][];
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description the class in one line */
            text: string;
            /** @description distinct, at most 1000 */
            users: number;
            /** @description the outcome; the name will be removed in the next release */
            verdict: string;
        };
        /** @description EscalationChange says for whom a draft opens and closes a way to become cluster administrator. */
        EscalationChange: {
            /** @description `closed` are those there are now, of those who then have none: 100 at most. */
            closed: components["schemas"]["Path"][];
            /** @description how many there are in all */
            closedCount: number;
            /** @description `opened` are the shortest paths, with the draft, of those who have none now: 100 at most. */
            opened: components["schemas"]["Path"][];
            /** @description how many there are in all */
            openedCount: number;
        };
        /** @description EscalationsAnswer says who can become what. */
        EscalationsAnswer: {
            /** @description `accountsKnown` is false when unknown service accounts may exist. */
            accountsKnown: boolean;
            /**
             * Format: date-time
             * @description `at` is the moment asked about, or when the newest known change was done; null when no change is known.
             */
            at: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description how many */
            count: number;
            /** @description of the subject, as in CanAnswer */
            groups?: string[];
            /** @description where they come from: asked, requests, name */
            groupsFrom?: string;
            /**
             * Format: date-time
             * @description when its requests carried them
             */
            groupsSeen?: string;
            /** @description what may be wrong with the question */
            hints?: string[];
            /** @description `known` is false when any number of unknown bindings may exist. */
            known: boolean;
            /** @description `missing` names what is not known and could add to the answer. */
            missing: string[];
            /** @description `paths` are the shortest to a goal: of the subject to each goal, or of everybody to the nearest. Count is how many of the latter exist. */
            paths: components["schemas"]["Path"][];
            /** @description how many there are in all */
            reachCount?: number;
            /** @description `reaches` are the shortest paths of the subject to whom else it can become; ReachCount is how many there are. */
            reaches?: components["schemas"]["Path"][];
            /** @description `subject` is the user or group asked about, "" for all. */
            subject: string;
            /** @description `system` counts the subjects of Kubernetes itself that were left out. */
            system: number;
            /** @description `tooLarge` are the subjects, including Kubernetes' own, of which it is not known whether they reach a goal, because it takes too much work to follow what they, or those they can become, may do; it is the subject asked about if that may reach more. TooLargeCount is how many there are. */
            tooLarge?: components["schemas"]["Node"][];
            /** @description how many there are in all */
            tooLargeCount?: number;
        };
        /** @description a request with its verdict, in one line. */
        Event: {
            /** @description audit ID of the request */
            auditID: string;
            /** @description the one that decided */
            authorizer: string;
            /** @description what lies behind the class */
            cause: string;
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description of the response */
            code: number;
            /** @description how many grants allow it */
            grantCount: number;
            /** @description the count; the name will be removed in the next release */
            grants: number;
            /** @description Group, Resource, Subresource, Namespace and Name are those of the object the event names. */
            group?: string;
            /** @description `impersonatedBy` is who authenticated, where that is not the subject. */
            impersonatedBy?: string;
            /** @description name of the object */
            name?: string;
            /** @description "" is the whole cluster, or none */
            namespace?: string;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description identity of the request: audit IDs may be used again */
            request: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description plural name */
            resource?: string;
            /** @description the nearest address, which the apiserver saw itself */
            sourceIP?: string;
            /** @description of the judged event */
            stage: string;
            /** @description whom it was authorized as */
            subject: string;
            /** @description "" for none */
            subresource?: string;
            /**
             * Format: date-time
             * @description moment
             */
            time: string;
            /** @description the subject; the name will be removed in the next release */
            user: string;
            /** @description client, by its own word */
            userAgent?: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description requests, newest first. */
        EventsAnswer: {
            /** @description newest first, one a request */
            events: components["schemas"]["Event"][];
            /** @description when there are older ones: what before continues with */
            older?: string;
        };
        /** @description ExplainDenyAnswer says why each request of an audit ID was refused. */
        ExplainDenyAnswer: {
            /** @description 20 at most */
            requests: components["schemas"]["Denial"][];
            /** @description `truncated` says that the ID has more requests than one answer explains. */
            truncated?: boolean;
        };
        /** @description Facet counts requests by one key. */
        Facet: {
            /**
             * Format: date-time
             * @description `countedFrom` and CountedTo bound it; null when nothing is stored of the range. Ranges with too many events that are counted in whole all the same are counted in whole minutes.
             */
            countedFrom: string;
            /**
             * Format: date-time
             * @description exclusive
             */
            countedTo: string;
            /** @description as of where */
            key: string;
            /** @description there are values with fewer requests */
            more: boolean;
            /** @description most requests first */
            values: components["schemas"]["FacetValue"][];
            /** @description `whole` is false when the range has older requests, which were not counted: ask for a shorter range. */
            whole: boolean;
        };
        /** @description a value and how many requests have it. A request counts for each of its groups, addresses and rules. */
        FacetValue: {
            /** @description how many */
            requests: number;
            /** @description "" for none */
            value: string;
        };
        /** @description FacetsAnswer says which values the requests of a range have, and how often. What has too many events is not counted in whole: each count says over what stretch it was made, the newest there is. */
        FacetsAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /**
             * Format: date-time
             * @description `countedFrom` and CountedTo bound it; null when nothing is stored of the range. Ranges with too many events that are counted in whole all the same are counted in whole minutes.
             */
            countedFrom: string;
            /**
             * Format: date-time
             * @description exclusive
             */
            countedTo: string;
            /** @description as asked for */
            facets: components["schemas"]["Facet"][];
            /** @description `requests` counts those that the filters select, in its stretch. */
            requests: number;
            /** @description `whole` is false when the range has older requests, which were not counted: ask for a shorter range. */
            whole: boolean;
        };
        /** @description what detections found. */
        FindingsAnswer: {
            /** @description as analysis/detect writes them */
            findings: components["schemas"]["DetectFinding"][];
            /** @description `near` are subjects that a stranger's name may have been meant for, three at most. */
            near?: string[];
            /** @description what before= continues with */
            older?: string;
            /** @description findings by rule, of all pages */
            rules: {
                [key: string]: number;
            };
            /** @description `stranger` says that no request of the subject asked about is stored. */
            stranger?: boolean;
        };
        /** @description a binding, for one of its subjects, that let a request or a check pass for the first time. */
        FirstGrant: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description and checks behind requests, all since */
            requests: number;
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
        };
        /** @description something a subject asked for the first time. Generated parts of names are folded to *. */
        FirstUse: {
            /** @description requests of those, as recorded */
            allowed: number;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /** @description requests of those, as recorded */
            forbidden: number;
            /** @description API group; "" is the core group */
            group: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description of a request about no resource */
            path: string;
            /** @description all that were made since */
            requests: number;
            /** @description plural name */
            resource: string;
            /** @description who it is about */
            subject: string;
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description FirstUsesAnswer says what was done, and which bindings were used, for the first time in a range. */
        FirstUsesAnswer: {
            /** @description `baseline` says what that makes of the answer: "enough"; "short", when it is shorter than the range, so that much of what is listed is only not known from before; "none", when nothing is stored from before the range: then nothing is listed, as all would be new. */
            baseline: string;
            /** @description name of the cluster */
            cluster: string;
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            /** @description `grants` are bindings that let something pass for the first time, the earliest first. */
            grants: components["schemas"]["FirstGrant"][];
            /** @description there are more */
            moreGrants: boolean;
            /** @description there are more */
            moreUses: boolean;
            /**
             * Format: date-time
             * @description `since` is the cluster's first stored request: the baseline is from then to From. Null when nothing is stored.
             */
            since: string;
            /** @description the same in words */
            text: string;
            /** @description `unnamed` counts requests of the days of the range that are not counted by what they asked for: of these none is known to be the first. */
            unnamed: number;
            /** @description what subjects asked for, the earliest first */
            uses: components["schemas"]["FirstUse"][];
        };
        /** @description one flaw. Objects are written Kind/name or Kind/namespace/name. */
        Flaw: {
            /** @description `by` are the bindings that make it superfluous. */
            by?: string[];
            /** @description `idle` flaws have no effect: all of them can be removed together. */
            idle: boolean;
            /** @description `kind` is one of those in docs/escalations.md. */
            kind: string;
            /** @description the binding, or the role */
            object: string;
            /** @description of a binding */
            role?: string;
            /** @description `rule` is the index in the role's rules, of shadowed rules. */
            rule?: number;
            /** @description `subjects` are those the flaw is about, as the binding names them. */
            subjects?: string[];
            /** @description what is wrong, in one line */
            text: string;
        };
        /** @description a grant. */
        Grant: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /** @description `kind` is "superuser" for what needs no grant: membership of system:masters. The rest of it is empty then. */
            kind?: string;
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
            /** @description `verbs` of a merged rule that this grant gives; left out when it gives them all. */
            verbs?: string[];
        };
        /** @description a rule a subject holds, and by which grants. */
        HeldRule: {
            /** @description as RBAC has them */
            apiGroups?: string[];
            /** @description grants it comes from */
            by: components["schemas"]["Grant"][];
            /** @description as RBAC has them; RoleBindings never give any */
            nonResourceURLs?: string[];
            /** @description as RBAC has them */
            resourceNames?: string[];
            /** @description as RBAC has them */
            resources?: string[];
            /** @description as RBAC has them */
            verbs: string[];
        };
        /** @description HistogramAnswer counts requests step by step. */
        HistogramAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /**
             * Format: date-time
             * @description `countedFrom` and CountedTo bound it; null when nothing is stored of the range. Ranges with too many events that are counted in whole all the same are counted in whole minutes.
             */
            countedFrom: string;
            /**
             * Format: date-time
             * @description exclusive
             */
            countedTo: string;
            /** @description key the counts are split by, "" for none */
            split: string;
            /** @description length of a step, 0 when nothing is stored of the range */
            stepSeconds: number;
            /** @description oldest first, those without requests too; 200 at most */
            steps: components["schemas"]["HistogramStep"][];
            /** @description `values` are those of the key with most requests, in the order of each step's counts. */
            values: string[];
            /** @description `whole` is false when the range has older requests, which were not counted: ask for a shorter range. */
            whole: boolean;
        };
        /** @description HistogramStep counts the requests of one step. */
        HistogramStep: {
            /** @description of each of the values */
            counts: number[];
            /** @description of all other values; without a split, of all */
            others: number;
            /**
             * Format: date-time
             * @description begin
             */
            t: string;
        };
        /** @description a subject granted the request in one scope, with every grant. */
        Holder: {
            /** @description all that allow it there */
            grants: components["schemas"]["Grant"][];
            /** @description User, Group, ServiceAccount */
            kind: string;
            /** @description name of the object */
            name: string;
            /** @description of a service account */
            namespace: string;
            /** @description "cluster", or "namespace:" and its name */
            scope: string;
        };
        /** @description HygieneAnswer says what is idle or wrong in a policy. */
        HygieneAnswer: {
            /** @description `accountsKnown` is false when not all service accounts of that time are known: a subject reported missing may exist. */
            accountsKnown: boolean;
            /**
             * Format: date-time
             * @description `at` is the moment asked about, or when the newest known change was done; null when no change is known.
             */
            at: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description by kind */
            flaws: components["schemas"]["Flaw"][];
            /** @description `known` is false when any number of unknown bindings may exist. */
            known: boolean;
            /** @description `missing` names what is not known and could add to the answer. */
            missing: string[];
            /** @description `system` counts the flaws left out because they are in what Kubernetes itself installs. */
            system: number;
        };
        /** @description the request that made a credential. A token has the members from serviceAccount on, a certificate those from csr on. */
        Issue: {
            /**
             * Format: date-time
             * @description when it was made
             */
            at: string;
            /** @description of the request that made it */
            auditID: string;
            /** @description who asked for it */
            by: string;
            /** @description subject's common name */
            commonName?: string;
            /** @description name of the signing request */
            csr?: string;
            /**
             * Format: date-time
             * @description when the credential does
             */
            expires?: string;
            /** @description address */
            from?: string;
            /** @description name of the node */
            node?: string;
            /** @description groups */
            organizations?: string[];
            /** @description name of the pod */
            pod?: string;
            /** @description uid of the pod */
            podUID?: string;
            /** @description name of the Secret */
            secret?: string;
            /** @description namespace/name */
            serviceAccount?: string;
            /** @description name of the signer */
            signer?: string;
        };
        /** @description one request with everything known about it. */
        JudgedRequest: {
            /** @description name of the apiserver */
            apiserver?: string;
            /** @description `at` is the answer at another time, if that was asked for. */
            at?: components["schemas"]["DecisionAt"];
            /** @description `authenticators` has what each configured authenticator says of the identity, in the order they are asked; only if the apiserver's configuration is known. */
            authenticators?: components["schemas"]["AuthnAnswer"][];
            /** @description `chain` has each authorizer's answer in the replay. */
            chain?: components["schemas"]["VerdictChainStep"][];
            /** @description name of the cluster */
            cluster: string;
            /** @description of the last stage, as stored */
            event: Record<string, never>;
            /** @description `issue` says how the credential was made, if a recorded request shows it. */
            issue?: components["schemas"]["Issue"];
            /** @description identity of the request */
            request: string;
            /** @description how the event came first: webhook, log, import */
            source: string;
            /** @description recorded ones, in order */
            stages: components["schemas"]["Stage"][];
            /** @description `twin` is the same request as another server of the cluster recorded it: that of an aggregated API server, or of the kube-apiserver in front of it. It names that server. */
            twin?: string;
            /** @description null when no stage was judged */
            verdict: components["schemas"]["VerdictLine"];
        };
        /** @description a missing thing and how many requests wait for it. */
        Lack: {
            /** @description how many */
            requests: number;
            /** @description what is missing */
            what: string;
        };
        /** @description a verb that a narrowed role keeps although nobody used it, and why. */
        LeastprivAdded: {
            /** @description with which use it goes */
            reason: string;
            /** @description as "resource.group" */
            resource: string;
            /** @description that it is kept of: Kind/name or Kind/namespace/name */
            role: string;
            /** @description that was not used */
            verb: string;
        };
        /** @description what changes that the first part of a recording gives would have done to the rest of it. */
        LeastprivBacktest: {
            /**
             * Format: date-time
             * @description when the rest begins
             */
            at: string;
            /** @description `forms` of a change, side by side; the first is none. */
            forms: components["schemas"]["LeastprivBacktestForm"][];
            /** @description of the subjects, those that were learned at the cut */
            learned: number;
            /** @description theirs */
            learnedRequests: number;
            /** @description of the window, that the changes are made of */
            percent: number;
            /** @description `requests` of the rest that the roles at the cut allow. Of subjects that only the rest has, no change is made, and theirs are not counted. */
            requests: number;
            /** @description that made them */
            subjects: number;
        };
        /** @description one form of a change, in force for all subjects together. */
        LeastprivBacktestForm: {
            /** @description `excess` of the subjects' own bindings with all changes in force, by what the first part used. */
            excess: number;
            /** @description today, narrow, no-added-verbs, strict or union */
            form: string;
            /** @description how many of those of learned subjects it refuses */
            learnedRefused: number;
            /** @description whose they are */
            learnedRefusedSubjects: number;
            /** @description what is refused, the most often first; at most mostLost */
            lost: components["schemas"]["LeastprivLost"][];
            /** @description `newlyAllowed` counts the distinct requests that were refused in the rest, and by the roles at the cut, and are allowed. */
            newlyAllowed: number;
            /** @description roles and bindings there are then */
            objects: number;
            /** @description how many of the requests it refuses */
            refused: number;
            /** @description whose they are */
            refusedSubjects: number;
        };
        /** @description Excess weighs what is granted and was never used, by danger; see Weight. Before and After count the subject's own bindings, Kept what its groups hold, which the change does not touch. */
        LeastprivExcess: {
            /** @description what came after, or was so after */
            after: number;
            /** @description what came before, or was so before */
            before: number;
            /** @description `held` is the weight of all that the subject's own bindings grant, used or not: Before is a part of it. */
            held: number;
            /** @description what stays */
            kept: number;
        };
        /** @description a binding that grants the subject something through a group. */
        LeastprivKeep: {
            /** @description Kind/name or Kind/namespace/name */
            binding: string;
            /** @description weight of what it gives and the subject never used */
            excess: number;
            /** @description API group; "" is the core group */
            group: string;
            /** @description `relied` counts the distinct recorded requests that the binding allows. */
            relied: number;
            /** @description Kind/name or Kind/namespace/name */
            role: string;
            /** @description `tooLarge` means that this is too much work to compute; Relied and Excess are lower bounds, and Undoes may be incomplete. */
            tooLarge?: boolean;
            /** @description `undoes` are unused grants that the suggestion removes and this binding still gives; the first 20. They make the change partly pointless. */
            undoes?: string[];
        };
        /** @description a request that a change refuses although it was made later. */
        LeastprivLost: {
            /** @description such as "list pods in shop" */
            access: string;
            /** @description how many */
            count: number;
            /** @description who it is about */
            subject: string;
        };
        /** @description Maturity says how far what a subject needs of its own roles is known: a subject that has been doing the same for long is learned, another one is still learning. */
        LeastprivMaturity: {
            /**
             * Format: date-time
             * @description when it last used something for the first time
             */
            lastNew: string;
            /** @description else it is still learning */
            learned: boolean;
            /** @description `new` estimates the share of requests to come that need something of the roles that was never used: (s+1) / (n+1), where s is how many verbs on resources the subject used once, and n the requests that its own roles allowed. This is Good and Turing's estimate, smoothed. */
            new: number;
            /**
             * Format: date-time
             * @description its first request that its own roles allowed; zero: there was none
             */
            since: string;
            /** @description what is missing; empty if learned */
            why?: string;
        };
        /** @description decoded from JSON into their own types. */
        LeastprivObjects: unknown[];
        /** @description an object that a release, an application or another object owns, and writes again. */
        LeastprivOwned: {
            /** @description Kind/name or Kind/namespace/name */
            object: string;
            /** @description such as "Helm release shop/web" */
            owner: string;
        };
        /** @description Plan joins several suggestions. A binding that more than one of them leaves is replaced once, without all of their subjects. */
        LeastprivPlan: {
            /** @description objects to write */
            apply: components["schemas"]["LeastprivObjects"];
            /** @description `final` are the RBAC objects of the final state that concern the subjects: their bindings, those of their groups, and the roles that these name. */
            final: components["schemas"]["LeastprivObjects"];
            /** @description every recorded access is decided as before */
            holds: boolean;
            /** @description `owned` are the objects to write or to remove that something else writes: the change has to be made there. */
            owned: components["schemas"]["LeastprivOwned"][];
            /** @description `proofs` are those of the subjects, in the order of the suggestions, against the policy with all of the suggestions in force. */
            proofs: components["schemas"]["LeastprivProof"][];
            /** @description objects to delete */
            remove: components["schemas"]["LeastprivRemove"][];
            /** @description objects that undo the plan */
            rollback: components["schemas"]["LeastprivObjects"];
            /** @description `why` says of each rule of the roles in Apply why it stays. */
            why: components["schemas"]["LeastprivRuleReason"][];
        };
        /** @description the outcome of replaying a subject's recorded history against a final state. */
        LeastprivProof: {
            /** @description how many */
            accesses: number;
            /** @description `allowedBefore` counts refusals that would be allowed, as they were at another time of the window. */
            allowedBefore: number;
            /** @description `allowedByKept` counts refusals that the subject's groups allow by now, with or without the suggestion. */
            allowedByKept: number;
            /** @description `allowedToday` counts refusals that the subject's own bindings allow by now: a narrowed role holds no more than they do. */
            allowedToday: number;
            /** @description `failures` name the first requests behind Refused and NewlyAllowed. */
            failures?: string[];
            /** @description `holds` means that nothing that was allowed and needed is refused, and nothing is newly allowed. */
            holds: boolean;
            /** @description `implied` counts refusals that any policy allows if it allows the needs: a request by name where one without a name was allowed later, a role whose rules were all used. */
            implied: number;
            /** @description `leftOut` counts requests that cannot be allowed without a wildcard; they are not evaluated. */
            leftOut: number;
            /** @description `newlyAllowed` counts refusals that would be allowed now, and never were. */
            newlyAllowed: number;
            /** @description `refusals` counts the distinct refusals on record that were evaluated again. */
            refusals: number;
            /** @description those that were refused */
            refused: number;
            /** @description `requests` counts the requests that RBAC allowed and the hidden checks that passed, all evaluated again; Accesses counts the distinct ones. */
            requests: number;
            /** @description `takenAway` counts requests whose grant has been taken away since: a narrowed role does not give it back. They are not evaluated. */
            takenAway: number;
        };
        /** @description Recording describes what the whole recording covers and what it lacks. Advice is only as good as that. */
        LeastprivRecording: {
            /** @description `coverage` is Judged ÷ Requests, 0 if there are none. */
            coverage: number;
            /** @description `deadLetters` could not be read at all. */
            deadLetters: number;
            /** @description `dropped` requests were recorded but are past retention. */
            dropped: number;
            /**
             * Format: date-time
             * @description first request
             */
            from: string;
            /** @description `gaps` describe all of that in words, and what is not known of the policy; see Describe. */
            gaps: string[];
            /** @description could be compared with the replica's decision */
            judged: number;
            /** @description how many */
            requests: number;
            /**
             * Format: date-time
             * @description last request
             */
            to: string;
            /** @description `truncated` events came without the bodies they had. */
            truncated: number;
            /** @description `unjudged` counts the others, and those with an uncertain or contradicting verdict, by outcome and class. */
            unjudged: {
                [key: string]: number;
            };
        };
        /** @description Remove takes subjects out of a binding, or deletes a role that nobody holds then. */
        LeastprivRemove: {
            /** @description `action` is "delete" if the subject is the only one of the binding, else "replace" by Object. */
            action: string;
            /** @description kind of the object */
            kind: string;
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace?: string;
            object?: unknown;
            /** @description that are taken out */
            subjects: components["schemas"]["V1Subject"][];
        };
        /** @description RuleReason says why a rule of a role to apply stays. */
        LeastprivRuleReason: {
            /** @description distinct days (UTC) on which it was needed */
            days: number;
            /**
             * Format: date-time
             * @description when it was needed last; zero: never
             */
            last: string;
            /** @description `requests` counts those on record, and the checks behind them, that Subjects need the rule for: without their own bindings they would be refused. */
            requests: number;
            /** @description that is applied: Kind/name or Kind/namespace/name */
            role: string;
            /** @description index in the role */
            rule: number;
            /** @description who needs it */
            subjects: string[];
            /** @description `texts` say so in words, and why verbs stay that nobody used: a line each. They are the comments of the YAML. */
            texts: string[];
        };
        /** @description Size counts the objects of a change. */
        LeastprivSize: {
            /** @description how many there are to write */
            apply: number;
            /** @description how many bindings and roles there are to delete */
            remove: number;
            /** @description how many undo it */
            rollback: number;
        };
        /** @description the change that leaves a subject what the recording shows it needs. */
        LeastprivSuggestion: {
            /** @description `added` are verbs that the roles to apply hold although nobody used them, and why. */
            added: components["schemas"]["LeastprivAdded"][];
            /** @description objects to write */
            apply: components["schemas"]["LeastprivObjects"];
            /** @description of what it holds, before and after */
            excess: components["schemas"]["LeastprivExcess"];
            /** @description `form` of the change: narrow, strict (roles of its own that hold exactly what it used) or unchanged, where neither can be proved. */
            form: string;
            /** @description `gaps` describe what the suggestion does not know or cannot do. */
            gaps: string[];
            /** @description `groups` are the group sets the subject was seen with, each sorted. */
            groups: string[][];
            /** @description bindings that stay */
            keeps: components["schemas"]["LeastprivKeep"][];
            /** @description `maturity` says whether what the subject needs is known. */
            maturity: components["schemas"]["LeastprivMaturity"];
            /** @description `owned` are the objects to write or to remove that something else writes: the change has to be made there. */
            owned: components["schemas"]["LeastprivOwned"][];
            /** @description the recorded accesses, replayed */
            proof: components["schemas"]["LeastprivProof"];
            /** @description bindings, and roles that nobody holds any more, to delete */
            remove: components["schemas"]["LeastprivRemove"][];
            /** @description `rollback` holds the objects as they were. What Apply created and Rollback does not hold is to be deleted. */
            rollback: components["schemas"]["LeastprivObjects"];
            /** @description `seen` subjects made requests. Of others only their rights are known, all of them unused, and Groups are those that their names imply. */
            seen: boolean;
            /** @description `size` counts Apply, Remove and Rollback, also where they are left out. */
            size: components["schemas"]["LeastprivSize"];
            /** @description user name, as authorized; or the group, role or binding that the change is for */
            subject: string;
            /** @description `system` subjects belong to Kubernetes itself, see System. */
            system: boolean;
            /** @description what it holds and never used */
            unused: components["schemas"]["LeastprivUnused"][];
            /** @description `what` the change is for: subject, group, role or binding. */
            what: string;
            /** @description `why` says of each rule of the roles in Apply why it stays. */
            why: components["schemas"]["LeastprivRuleReason"][];
            /** @description what the recording covers */
            window: components["schemas"]["LeastprivWindow"];
        };
        /** @description a user that bindings name and that made no request. */
        LeastprivUnseen: {
            /** @description Kind/name or Kind/namespace/name */
            bindings: string[];
            /** @description weight of what it holds, all of it unused */
            excess: number;
            /** @description who it is about */
            subject: string;
            /** @description `tooLarge` means that some of it is too much work to weigh; Excess is a lower bound. */
            tooLarge?: boolean;
        };
        /** @description a rule of one of the subject's own bindings and the part of it that was never used. */
        LeastprivUnused: {
            /** @description Kind/name or Kind/namespace/name */
            binding: string;
            /** @description weight of what is held and not used */
            excess: number;
            /** @description the same; the name will be removed in the next release */
            grants: string[];
            /** @description how many are left out */
            more?: number;
            /** @description Kind/name or Kind/namespace/name */
            role: string;
            /** @description index in the role */
            rule: number;
            /** @description `tooLarge` means that matching the rule with what was used is too much work. Excess is a lower bound. */
            tooLarge?: boolean;
            /** @description `unused` are what is, as "verb resource.group" or "verb /path"; the first 20. */
            unused: string[];
            /** @description nothing of the rule was used */
            whole: boolean;
        };
        /** @description what was observed of a subject. */
        LeastprivWindow: {
            /** @description `coverage` is Judged ÷ Requests, 0 if there are none. */
            coverage: number;
            /**
             * Format: date-time
             * @description `from` and To are the first and the last request of the whole recording.
             */
            from: string;
            /** @description `gaps` are what the whole recording lacks, see Recording. */
            gaps: string[];
            /** @description requests that were compared with the replica */
            judged: number;
            /** @description `requests` were recorded of the subject, including those it made as another user. Judged of them could be compared with the replica's decision (match, drift or ambiguous). */
            requests: number;
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
        };
        /** @description a request whose audit ID begins with the one asked about. */
        LikeRequest: {
            /** @description audit ID of the request */
            auditID: string;
            /** @description the one that decided */
            authorizer: string;
            /** @description what lies behind the class */
            cause: string;
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description of the response */
            code: number;
            /** @description how many grants allow it */
            grantCount: number;
            /** @description the count; the name will be removed in the next release */
            grants: number;
            /** @description Group, Resource, Subresource, Namespace and Name are those of the object the event names. */
            group?: string;
            /** @description `impersonatedBy` is who authenticated, where that is not the subject. */
            impersonatedBy?: string;
            /** @description name of the object */
            name?: string;
            /** @description "" is the whole cluster, or none */
            namespace?: string;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description identity of the request: audit IDs may be used again */
            request: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description plural name */
            resource?: string;
            /** @description the nearest address, which the apiserver saw itself */
            sourceIP?: string;
            /** @description of the judged event */
            stage: string;
            /** @description whom it was authorized as */
            subject: string;
            /** @description "" for none */
            subresource?: string;
            /**
             * Format: date-time
             * @description moment
             */
            time: string;
            /** @description the subject; the name will be removed in the next release */
            user: string;
            /** @description client, by its own word */
            userAgent?: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description the life of a credential, or of a subject's credentials. */
        LineageAnswer: {
            /** @description name of the cluster */
            cluster: string;
            /** @description the newest use first */
            credentials: components["schemas"]["Credential"][];
            /** @description who it is about */
            subject?: string;
            /** @description `truncated` says that the subject has more credentials than the answer. */
            truncated?: boolean;
        };
        /** @description MayBind says whether a subject may write a binding to a role, which takes more than the right to write bindings: the verb bind on the role, or every rule the role has. */
        MayBind: {
            /** @description yes, no, unknown */
            allowed: string;
            /** @description `covers` says that its own rules cover those of the role, so it needs no grant of the verb bind. */
            covers: boolean;
            /** @description `more` says that RulesMissing is cut off, TooCostly that comparing the rules takes more work than is allowed. */
            more?: boolean;
            /** @description the role does not exist */
            roleAbsent?: boolean;
            /** @description `rulesMissing` are the role's rules that it does not hold, combined as the apiserver lists them. */
            rulesMissing: components["schemas"]["V1PolicyRule"][];
            /** @description comparing takes more work than is allowed */
            tooCostly?: boolean;
        };
        /** @description what would have allowed a request. */
        NearestMiss: {
            /** @description rules the subject has that lack one thing */
            almost: components["schemas"]["Almost"][];
            /** @description that allow it to others */
            bindings: components["schemas"]["Offer"][];
            /** @description that exist and allow it, the narrowest first */
            roles: components["schemas"]["Offer"][];
            /** @description the narrowest that does */
            rule: components["schemas"]["V1PolicyRule"];
        };
        /** @description a request a step takes, and what grants it. */
        Needed: {
            /** @description those that allow it */
            grants: components["schemas"]["Grant"][];
            /** @description API group; "" is the core group */
            group: string;
            /** @description empty on create, or when any does */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description plural name */
            resource: string;
            /** @description `role` grants it when Grants is empty: one that an earlier step bound or rewrote. */
            role?: string;
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description a User, Group, ServiceAccount, Namespace (everything in it), Bound (the one before it with roles it bound to itself) or Goal. */
        Node: {
            /** @description User, Group, ServiceAccount, Namespace, Bound, Goal */
            kind: string;
            /** @description name of the object */
            name: string;
            /** @description of a ServiceAccount */
            namespace?: string;
        };
        /** @description a role, or a binding to one, that allows a request. */
        Offer: {
            /** @description of an offer that is one */
            binding?: string;
            /** @description that allows it */
            role: string;
            /** @description index of the first of its rules that does */
            rule: number;
        };
        /** @description OutcomeMeaning says what an outcome of a verdict means. */
        OutcomeMeaning: {
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description in one line */
            text: string;
        };
        /** @description OverviewAnswer sums up a range of time. */
        OverviewAnswer: {
            /** @description length of a bucket of volume, chosen so that there are at most 120 */
            bucketSeconds: number;
            /** @description requests by class */
            classes: components["schemas"]["ClassCount"][];
            /** @description name of the cluster */
            cluster: string;
            /** @description requests by recorded and replayed decision */
            decisions: components["schemas"]["Decided"][];
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            /** @description what to supply so that more can be decided; left out when nothing is missing */
            next?: components["schemas"]["Advice"];
            /** @description the 15 with most requests */
            subjects: components["schemas"]["SubjectCount"][];
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
            /** @description of the whole range */
            totals: components["schemas"]["Totals"];
            /** @description empty buckets are left out */
            volume: components["schemas"]["Bucket"][];
        };
        /** @description one way from a subject to another or to a goal. */
        Path: {
            /** @description `doubted` are objects it rests on that may not grant what it takes: the answer to a write of theirs was lost. */
            doubted?: string[];
            /** @description begin, inclusive */
            from: components["schemas"]["Node"];
            /** @description `holds` is what makes the last one a cluster administrator, when no step gave it that. */
            holds?: components["schemas"]["Needed"][];
            /** @description how many, over all steps */
            presumptions: number;
            /** @description none: it is there */
            steps: components["schemas"]["PathStep"][];
            /** @description the path in one line */
            text: string;
            /** @description end, exclusive */
            to: components["schemas"]["Node"];
            /** @description `tooLarge` says that the path is not complete, because listing it takes too much work. */
            tooLarge?: boolean;
        };
        /** @description one step of a path: what it takes and whom it leads to. */
        PathStep: {
            /** @description the way the step takes, as in docs/escalations.md */
            edge: string;
            /** @description begin, inclusive */
            from: components["schemas"]["Node"];
            /** @description From is; its requests are made with its name in headers */
            impersonated: boolean;
            /** @description where it is taken; "" is the whole cluster */
            namespace: string;
            /** @description beside the rights */
            presumes?: string[];
            /** @description all of them are needed */
            requests: components["schemas"]["Needed"][];
            /** @description that it binds or rewrites */
            roles?: components["schemas"]["BoundRole"][];
            /** @description end, exclusive */
            to: components["schemas"]["Node"];
        };
        /** @description one write to a role or binding. */
        PolicyChange: {
            /** @description the user it impersonated */
            actingAs?: string;
            /** @description `auditID` is of the request that did it, User who made it and ActingAs whom they acted as; all empty when no stored request did. */
            auditID?: string;
            /** @description of the response, 0 without a request; of 500 and above it may not have been done */
            code: number;
            /** @description `effect` says whether it changed what anybody can do: yes, no, unknown. */
            effect: string;
            /** @description Kind/name or Kind/namespace/name; of a collection Kind/* or Kind/namespace/* */
            object: string;
            /** @description `objects` are those that a request for a collection deleted. */
            objects?: string[];
            /**
             * Format: date-time
             * @description of the request, or when it was in force at the latest
             */
            time: string;
            /** @description user name */
            user: string;
            /** @description of the request; without one: written, deleted, unknown */
            verb: string;
        };
        /** @description PolicyChangeDetail says what a write changed, and what came of it. */
        PolicyChangeDetail: {
            /** @description `access` is what was gained and lost; null when no object is known to have changed. */
            access: components["schemas"]["AccessChange"];
            /** @description `firstUses` are what those subjects and members asked for the first time in that hour, the earliest first. */
            firstUses: components["schemas"]["FirstUse"][];
            /** @description More: there are more of either. */
            more: boolean;
            /** @description requests */
            otherRefusals: number;
            /** @description `refusals` are requests of the subjects it concerns, and of members of the groups, that were refused in that hour and that RBAC allowed until this write. OtherRefusals counts their other refused requests. */
            refusals: components["schemas"]["Refusal"][];
            /** @description `revert` is how to take the write back. */
            revert: components["schemas"]["RevertPolicyRevert"];
            /**
             * Format: date-time
             * @description `until` is the end of the hour in which what came of it is looked for.
             */
            until: string;
        };
        /** @description PolicyChangesAnswer lists what was written to the policy. */
        PolicyChangesAnswer: {
            /** @description newest first */
            changes: components["schemas"]["PolicyChange"][];
            /** @description name of the cluster */
            cluster: string;
            /** @description `detail` is of the write that was asked for alone. */
            detail?: components["schemas"]["PolicyChangeDetail"];
            /** @description `known` is false when no policy of the cluster is known: then no effect is. */
            known: boolean;
            /** @description there are older ones in the range */
            more: boolean;
        };
        /** @description one change of an object. */
        PolicyWrite: {
            /** @description `assumed` says that no write was seen, only its effect by then. */
            assumed?: boolean;
            /** @description AuditID, Verb and User are of the stored request that did it, where there is one. */
            auditID?: string;
            /**
             * Format: date-time
             * @description when it was in force at the latest
             */
            notAfter: string;
            /**
             * Format: date-time
             * @description `notBefore` and NotAfter bound when it became effective; without NotBefore it has no lower bound.
             */
            notBefore?: string;
            /** @description Kind/name or Kind/namespace/name */
            object: string;
            /** @description of the object */
            resourceVersion?: string;
            /** @description of the object */
            uid?: string;
            /** @description user name */
            user?: string;
            /** @description verb of the request */
            verb?: string;
            /** @description written, deleted, unknown */
            what: string;
        };
        /** @description QueryLogAnswer says who asked what. */
        QueryLogAnswer: {
            /** @description newest first */
            asked: components["schemas"]["Asked"][];
        };
        /** @description refused requests of one subject, verb and resource, for one cause. */
        Refusal: {
            /** @description of the first request */
            auditID: string;
            /** @description `cause` is why, a closed set; it was looked for at the first request. Text says it in one line. */
            cause: string;
            /** @description that refused it */
            check?: string;
            /** @description of the response */
            code: number;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /** @description API group; "" is the core group */
            group: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description of the first request */
            missing: string[];
            /** @description of the object of the first request */
            name: string;
            /** @description how many there are */
            namespaceCount: number;
            /** @description five at most; "" is a request without one */
            namespaces: string[];
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description of requests about no resource; long tails are folded to * */
            path: string;
            /** @description of admission */
            plugin?: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description how many */
            requests: number;
            /** @description plural name */
            resource: string;
            /** @description who it is about */
            subject: string;
            /** @description "" for none */
            subresource: string;
            /** @description in one line */
            text: string;
            /** @description who authenticated, of the first request */
            user: string;
            /** @description verb of the request */
            verb: string;
            /** @description `writes` are what the cause policy-change names: the write since which RBAC refuses it. Several when they came into force together. */
            writes?: components["schemas"]["PolicyWrite"][];
        };
        /** @description RefusalsAnswer says what was refused in a range, and why. */
        RefusalsAnswer: {
            /** @description `changes` are the writes that made refusals, most requests first, whether or not the answer lists those. */
            changes: components["schemas"]["RefusingChange"][];
            /** @description name of the cluster */
            cluster: string;
            /** @description `known` is false when no policy of the cluster is known: then no refusal is traced to a change. */
            known: boolean;
            /**
             * Format: date-time
             * @description `lookedBackTo` is the moment since which the policy was asked when a request was still allowed; null when it was not.
             */
            lookedBackTo: string;
            /** @description what is not known of the policy at that moment, and could have allowed something */
            missing: string[];
            /** @description More: there are more refusals or changes than the answer has, with fewer requests. */
            more: boolean;
            /** @description most requests first */
            refusals: components["schemas"]["Refusal"][];
            /** @description that were refused, all of them */
            requests: number;
            /** @description requests of Kubernetes' own subjects, which are left out */
            system: number;
        };
        /** @description a write and the refusals it made. */
        RefusingChange: {
            /** @description by index in the answer, of those that it lists */
            refusals: number[];
            /** @description refused since, in the range */
            requests: number;
            /** @description whose they are */
            subjects: string[];
            write: components["schemas"]["PolicyWrite"];
        };
        /** @description a job, as answers show it. */
        RejudgeJob: {
            /**
             * Format: date-time
             * @description when
             */
            asked: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description every partition is */
            done: boolean;
            /** @description nothing was changed */
            dryRun: boolean;
            /** @description version of the replica then */
            engine: string;
            /**
             * Format: date-time
             * @description begin, inclusive
             */
            from: string;
            /** @description identity, the same every time */
            id: string;
            /** @description how often somebody went on where another had stopped: what changed in those steps may be missing from the report */
            interrupted?: number;
            /** @description what was judged again, and what changed */
            report: components["schemas"]["VerdictRejudgeReport"];
            /** @description of the work, 0 to 1 */
            share: number;
            /**
             * Format: date-time
             * @description end, exclusive
             */
            to: string;
            /** @description conditions, sorted */
            where: string[];
        };
        /** @description RejudgeJobsAnswer lists jobs, the newest first. */
        RejudgeJobsAnswer: {
            /** @description newest first */
            jobs: components["schemas"]["RejudgeJob"][];
        };
        /** @description what is learnt of the cache lag of one apiserver. */
        ReplayLag: {
            /** @description as its endpoint names it */
            apiserver?: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description `learnt` is what three requests show at least, within MinLag and MaxLag; zero while there are fewer: then DefaultLag is assumed. */
            learnt: number;
            /** @description `longest` is the longest such a policy had ended before; one request may be explained otherwise, such as by clocks that do not agree. */
            longest: number;
            /** @description `requests` that were decided by a policy that had ended when they arrived. */
            requests: number;
        };
        /** @description a write to an object after those that are taken back. */
        RevertLaterWrite: {
            /** @description of that */
            auditID?: string;
            /**
             * Format: date-time
             * @description by when it was in force
             */
            time: string;
            /** @description who made that */
            user?: string;
            /** @description of the stored request that did it, where there is one */
            verb?: string;
        };
        /** @description how to take a write back: how each object that it changed becomes again what it was before. */
        RevertPolicyRevert: {
            /** @description objects beyond those, which Text does not have either */
            more: number;
            /** @description those that it changed, 100 at most */
            objects: components["schemas"]["RevertRevertedObject"][];
            /** @description `text` are commands for a shell, with the objects in YAML; empty when nothing can or need be done. */
            text: string;
            /** @description `warnings` say what would be undone besides, and what cannot be undone. */
            warnings: string[];
        };
        /** @description what a revert does to one object. */
        RevertRevertedObject: {
            /** @description delete, create, update, recreate, none, unknown, aggregated */
            action: string;
            /** @description `later` are writes to the object since, oldest first: reverting undoes them as well. */
            later: components["schemas"]["RevertLaterWrite"][];
            /** @description Kind/name or Kind/namespace/name */
            object: string;
        };
        /** @description a rule as RBAC has it. */
        Rule: {
            /** @description as RBAC has them */
            apiGroups?: string[];
            /** @description as RBAC has them; RoleBindings never give any */
            nonResourceURLs?: string[];
            /** @description as RBAC has them */
            resourceNames?: string[];
            /** @description as RBAC has them */
            resources?: string[];
            /** @description as RBAC has them */
            verbs: string[];
        };
        /** @description RulesAnswer lists the rules, in the order of their IDs. */
        RulesAnswer: {
            /** @description in the order of their ids */
            rules: components["schemas"]["DetectionRule"][];
        };
        /** @description what a subject holds in the whole cluster or one namespace. */
        Scope: {
            /** @description `missingRoles` are roles that the subject's bindings name and that do not exist. */
            missingRoles?: string[];
            /** @description "" is the whole cluster */
            namespace: string;
            /** @description merged where that changes nothing */
            rules: components["schemas"]["HeldRule"][];
        };
        /** @description one authorizer of the chain. */
        Shortfall: {
            /** @description lines of an ABAC policy file that differ in one thing */
            almost?: string[];
            /** @description allow, no opinion, unknown, not asked, skipped, failed, deny */
            answer: string;
            /** @description the one that decided */
            authorizer: string;
            /** @description of RBAC */
            nearest?: components["schemas"]["NearestMiss"];
            /** @description what it lacked */
            text: string;
        };
        /** @description one recorded stage of a request. */
        Stage: {
            /** @description of the response */
            code: number;
            /** @description stage of the event */
            stage: string;
            /**
             * Format: date-time
             * @description moment
             */
            time: string;
        };
        /** @description StatusAnswer says how far the replay is behind; if all are 0, everything accepted is stored and finally judged. */
        StatusAnswer: {
            /** @description `cacheLags` says what was learnt of each apiserver's cache lag, in nanoseconds. */
            cacheLags: components["schemas"]["ReplayLag"][];
            /** @description requests waiting to be judged again */
            corrections: number;
            /** @description records that could not be read, not yet stored */
            deadLetterLag: number;
            /** @description events accepted and not yet stored */
            lag: number;
            /** @description policy records not yet applied */
            policyLag: number;
            /** @description of the server */
            version: string;
        };
        /** @description SubjectCount counts the requests of a subject. */
        SubjectCount: {
            /** @description requests of this outcome */
            drift: number;
            /** @description requests of those that the apiserver refused */
            forbidden: number;
            /** @description how many */
            requests: number;
            /** @description user name, as authorized */
            subject: string;
            /** @description the subject; the name will be removed in the next release */
            user: string;
        };
        /** @description one rule of one binding. */
        SubjectRule: {
            /** @description as RBAC has them */
            apiGroups?: string[];
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /**
             * Format: date-time
             * @description when it was last used
             */
            last: string;
            /** @description as RBAC has them; RoleBindings never give any */
            nonResourceURLs?: string[];
            /** @description named itself, not through a group */
            own: boolean;
            /** @description Requests, and checks behind them, that it is the first rule of its role to allow; 0: never used. */
            requests: number;
            /** @description as RBAC has them */
            resourceNames?: string[];
            /** @description as RBAC has them */
            resources?: string[];
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description namespace, "" for the whole cluster */
            scope: string;
            /** @description as the binding names it, in the same form */
            subject: string;
            /** @description as RBAC has them */
            verbs: string[];
        };
        /** @description one thing a subject asked for, counted. Generated names are folded to *; beyond what is counted by name in a day, name or path is (other). */
        SubjectUse: {
            /** @description requests, as recorded */
            allowed: number;
            /** @description which passes without the verb */
            covered?: boolean;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /** @description requests, as recorded */
            forbidden: number;
            /** @description API group; "" is the core group */
            group: string;
            /** @description the check behind other requests that it is */
            implied?: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description of a request about no resource */
            path: string;
            /** @description how many */
            requests: number;
            /** @description plural name */
            resource: string;
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description SuggestAnswer says what subjects need, and which change leaves them no more. Of all subjects it has the size of each change and not the objects, unless changes are asked for. */
        SuggestAnswer: {
            /** @description `backtests` say what such changes, made of a first part of the range, would have refused of the rest; null unless asked for. */
            backtests: components["schemas"]["LeastprivBacktest"][];
            /** @description name of the cluster */
            cluster: string;
            /** @description `plan` is all suggestions in force together. */
            plan: components["schemas"]["LeastprivPlan"];
            /**
             * Format: date-time
             * @description `read` says when an answer that is kept was made, up to an hour ago; zero unless that was asked for, of all subjects.
             */
            read: string;
            /** @description the most excess first */
            suggestions: components["schemas"]["LeastprivSuggestion"][];
            /** @description `texts` are the changes as text, where subjects are named; null for all. */
            texts: components["schemas"]["SuggestTexts"];
            /** @description `unseen` subjects hold bindings and made no request; of all subjects only. */
            unseen: components["schemas"]["LeastprivUnseen"][];
            /** @description `window` says what the recording covers, and lacks. */
            window: components["schemas"]["LeastprivRecording"];
        };
        /** @description the changes of named subjects as text, to be read, kept and applied. */
        SuggestTexts: {
            /** @description `apply` is YAML: the objects to write and, as comments, what it rests on and what to remove then. */
            apply: string;
            /** @description `remove` are the commands that remove what the objects replace, a line each. */
            remove: string;
            /** @description `rollback` is YAML: the objects as they were and, as comments, which new ones to delete then. */
            rollback: string;
        };
        /** @description counts of a range. */
        Totals: {
            /** @description requests of this outcome */
            ambiguous: number;
            /** @description requests of this outcome */
            drift: number;
            /** @description all stages count */
            events: number;
            /** @description requests the apiserver refused */
            forbid: number;
            /** @description requests of this outcome */
            indeterminate: number;
            /** @description requests of this outcome */
            match: number;
            /** @description requests of this outcome */
            not_judged: number;
            /** @description each of one outcome */
            requests: number;
        };
        V1PolicyRule: {
            /** @description as RBAC has them */
            apiGroups?: string[];
            /** @description as RBAC has them; RoleBindings never give any */
            nonResourceURLs?: string[];
            /** @description as RBAC has them */
            resourceNames?: string[];
            /** @description as RBAC has them */
            resources?: string[];
            /** @description as RBAC has them */
            verbs: string[];
        };
        V1Subject: {
            apiGroup?: string;
            /** @description kind of the object */
            kind: string;
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace?: string;
        };
        /** @description what one admission plugin did with a request. */
        VerdictAdmissionAnswer: {
            /** @description `code` is the response's if the plugin refused the request, else 0. */
            code?: number;
            /** @description `name` is the policy, webhook or quota that decided, "" if there is none or it is not known. */
            name?: string;
            /** @description `outcome` is how the plugin's answer compares with the record: rejected (not evaluated again), pass, match, drift, ambiguous or indeterminate. */
            outcome: string;
            /** @description `plugin` is the plugin's name, as --enable-admission-plugins has it. */
            plugin: string;
            /** @description `reason` is what the plugin said when it refused; if it should have refused and did not, what it would have said; if its answer is not known, what is missing. */
            reason?: string;
        };
        /** @description what is known of admission in a Line. */
        VerdictAdmissionLine: {
            /** @description `answers` are those of the plugin that refused the request, and of each that was evaluated again. */
            answers?: components["schemas"]["VerdictAdmissionAnswer"][];
            /** @description `namespaceLifecycle` is that plugin's outcome. It will be removed in the next release: see answers. */
            namespaceLifecycle?: string;
            /** @description `plugin` is the one that refused the request. It will be removed in the next release: see answers. */
            plugin?: string;
            /** @description `recorded` is not-run, admitted or rejected. */
            recorded?: string;
        };
        /** @description what one authorizer of the configured chain answered in the replay. */
        VerdictChainStep: {
            /** @description one of the Answer constants */
            answer: string;
            /** @description by its name in the configuration */
            authorizer: string;
            /** @description `reason` is what it adds to the reason of a refusal; if its answer is unknown, what is missing. RBAC's reasons for an allow are those of its grants. */
            reason?: string;
        };
        /** @description one grant in a Line. */
        VerdictGrantLine: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /** @description as an apiserver words it */
            reason: string;
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
        };
        /** @description GrantNames names a grant, in every answer alike. Objects are written Kind/name or Kind/namespace/name. */
        VerdictGrantNames: {
            /** @description that gives it, Kind/name or Kind/namespace/name */
            binding: string;
            /** @description that the binding names, in the same form */
            role: string;
            /** @description index in the role's rules */
            rule: number;
            /** @description as the binding names it, in the same form */
            subject: string;
        };
        /** @description the impersonation check in a Line. */
        VerdictImpersonationLine: {
            /** @description what lies behind it */
            cause?: string;
            /** @description all that allow it */
            grants: components["schemas"]["VerdictGrantLine"][];
            /** @description what is not known, or not held */
            missing?: string[];
            /** @description how it was checked */
            mode: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
        };
        /** @description one check behind the authorization filter in a Line. */
        VerdictImpliedLine: {
            /** @description verb, resource, namespace and name in one line */
            asked?: string;
            /** @description name of the check, as in docs/implied.md */
            check: string;
            /** @description what it hands out is held: it is not needed */
            covered?: boolean;
            /** @description all that allow it */
            grants?: components["schemas"]["VerdictGrantLine"][];
            /** @description what is not known, or not held */
            missing?: string[];
            /** @description why it may not have been asked */
            perhaps?: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
        };
        /** @description the outcome and class of a verdict. */
        VerdictJudgement: {
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description the outcome; the name will be removed in the next release */
            verdict: string;
        };
        /** @description one verdict as `retrial evaluate -o jsonl` prints it. Names are part of the command's interface. */
        VerdictLine: {
            admission?: components["schemas"]["VerdictAdmissionLine"];
            /** @description audit ID of the request */
            auditID: string;
            /** @description the one that decided */
            authorizer: string;
            /** @description what lies behind it */
            cause: string;
            /** @description authorizers, in the order asked */
            chain?: components["schemas"]["VerdictChainStep"][];
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description configuration it was judged with */
            config: string;
            /** @description its id, as of lineage */
            credential?: string;
            /** @description version of the replica */
            engine: string;
            /** @description roles that do not exist */
            errors?: string[];
            /** @description of each entry of Identity */
            evidence?: string[];
            /** @description authenticators, by name */
            explained?: string[];
            /** @description all that allow it */
            grants: components["schemas"]["VerdictGrantLine"][];
            /** @description what the identity contradicts */
            identity?: string[];
            /** @description as whom it was done */
            impersonatedUser?: string;
            impersonation?: components["schemas"]["VerdictImpersonationLine"];
            /** @description checks behind the filter, as in docs/implied.md */
            implied?: components["schemas"]["VerdictImpliedLine"][];
            /** @description what is not known, or not held */
            missing?: string[];
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description the apiserver's reason */
            recordedReason?: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description RFC 3339, microseconds, UTC */
            requestReceivedTimestamp: string;
            /** @description path and query of the request */
            requestURI: string;
            review?: components["schemas"]["VerdictReviewLine"];
            /** @description stage of the event */
            stage: string;
            /** @description user name */
            user: string;
            /** @description verb of the request */
            verb: string;
            /** @description the outcome; the name will be removed in the next release */
            verdict: string;
        };
        /** @description one request whose verdict changed. */
        VerdictRejudgeExample: {
            /** @description what came after, or was so after */
            after: string;
            /**
             * Format: date-time
             * @description moment
             */
            at: string;
            /** @description audit ID of the request */
            auditID: string;
            /** @description the verdict's cause before */
            before: string;
            /** @description path and query of the request */
            requestURI: string;
            /** @description as whom the request was made */
            subject: string;
            /** @description the subject; the name will be removed in the next release */
            user: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description RejudgeReport summarizes the verdicts that changed: what they were before and after. */
        VerdictRejudgeReport: {
            /** @description verdicts that are other than before */
            changed: number;
            /** @description `failed` could not be judged again; their verdicts stand. */
            failed?: number;
            /** @description most requests first */
            transitions: components["schemas"]["VerdictTransition"][];
            /** @description judged again */
            visited: number;
        };
        /** @description a review's recorded answer in a Line, compared. */
        VerdictReviewLine: {
            /** @description what was asked about */
            asked?: string;
            /** @description what lies behind it */
            cause?: string;
            /** @description groups of the subject */
            groups?: string[];
            /** @description kind of the object */
            kind: string;
            /** @description match, drift, ambiguous, indeterminate, not_judged */
            outcome: string;
            /** @description in the apiserver's words */
            reason?: string;
            /** @description decision of the apiserver */
            recorded: string;
            /** @description decision of the replica */
            replayed: string;
            /** @description user name */
            user: string;
            /** @description the outcome; the name will be removed in the next release */
            verdict: string;
        };
        /** @description Transition counts verdicts that changed from one outcome and class to another; if both are the same, another part of the verdict changed: grants, contradictions, the chain. */
        VerdictTransition: {
            /** @description how many */
            count: number;
            /** @description the earliest */
            examples: components["schemas"]["VerdictRejudgeExample"][];
            /** @description begin, inclusive */
            from: components["schemas"]["VerdictJudgement"];
            /** @description end, exclusive */
            to: components["schemas"]["VerdictJudgement"];
        };
        /** @description WhatIfAnswer says what a draft of roles and bindings would refuse and allow of what was recorded. */
        WhatIfAnswer: {
            /** @description `accesses` are those that change, or may: revoked ones first, and of each class those asked for most. */
            accesses: components["schemas"]["WhatifAccess"][];
            /** @description `changes` are what the draft does to objects. */
            changes: components["schemas"]["WhatifChange"][];
            /** @description name of the cluster */
            cluster: string;
            escalation: components["schemas"]["EscalationChange"];
            /**
             * Format: date-time
             * @description `first` and Last are when the first and the last request came.
             */
            first: string;
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description `more` is how many accesses change beyond those listed. */
            more: number;
            /** @description `morePossible` is how many subjects there are beyond those. */
            morePossible: number;
            /** @description `notes` say what would not go as the draft has it, and what may be wrong with it. */
            notes: string[];
            /** @description `possible` is what becomes possible and impossible, whether or not anybody asked for it: what the name of a subject alone gives or, of a group, what being in it gives; 100 subjects at most, without users that are not asked about. */
            possible: components["schemas"]["ChangedSubject"][];
            /** @description how many */
            requests: components["schemas"]["WhatifCounts"];
            /** @description `summary` counts accesses of those whom the draft concerns, Requests their requests. */
            summary: components["schemas"]["WhatifCounts"];
            /** @description `unjudged` are requests of theirs that had no certain verdict, by outcome and class: they are in no class. */
            unjudged: {
                [key: string]: number;
            };
            /** @description `unreadable` counts writes of roles, bindings and certificates whose content is not kept: the checks behind them are not looked at. */
            unreadable: number;
        };
        /** @description something that a subject asked for, or that one of its requests implied, and what becomes of it. */
        WhatifAccess: {
            /** @description what came after, or was so after */
            after: components["schemas"]["VerdictGrantNames"][];
            /** @description of them, when they came */
            allowed: number;
            /** @description "" is the core group */
            apiGroup: string;
            /** @description `because` are the objects of the draft by which it changes. */
            because: string[];
            /** @description `before` and After are the grants that allow it, by each policy: eight of each at most. */
            before: components["schemas"]["VerdictGrantNames"][];
            /** @description `check` is the check behind a request that this is, as verdicts name it; left out for the request itself. */
            check?: string;
            /** @description class of the verdict, as of classes */
            class: string;
            /** @description requests */
            count: number;
            /**
             * Format: date-time
             * @description earliest request
             */
            first: string;
            /** @description groups of the subject */
            groups: string[];
            /**
             * Format: date-time
             * @description latest request
             */
            last: string;
            /** @description `missing` is what would have to be known to tell. */
            missing?: string[];
            /** @description name of the object */
            name?: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description of a request about no resource */
            path?: string;
            /** @description of them, when they came */
            refused: number;
            /** @description plural name */
            resource: string;
            /** @description `sample` are audit IDs of such requests, three at most, while events are kept. */
            sample: string[];
            /** @description rbac */
            source: string;
            /** @description who it is about */
            subject: string;
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description what a draft does to an object. */
        WhatifChange: {
            /** @description that it was read from */
            file?: string;
            /** @description it begins at in the file */
            line?: number;
            /** @description Kind/name or Kind/namespace/name */
            object: string;
            /** @description added, replaced, deleted, unchanged, aggregated */
            what: string;
        };
        /** @description numbers by class. */
        WhatifCounts: {
            /** @description refused, and then allowed */
            gained: number;
            /** @description perhaps allowed */
            maybe_gained: number;
            /** @description perhaps refused: what is not known decides */
            maybe_revoked: number;
            /** @description allowed, and then refused */
            revoked: number;
            /** @description as they are */
            unchanged: number;
            /** @description a webhook decides */
            unknown: number;
        };
        /** @description WhoCanAnswer says whom RBAC grants a request. */
        WhoCanAnswer: {
            /** @description in any namespace */
            allNamespaces: boolean;
            /**
             * Format: date-time
             * @description `at` is the moment asked about, or when the newest known change was done; null when no change is known.
             */
            at: string;
            /** @description name of the cluster */
            cluster: string;
            /** @description API group; "" is the core group */
            group: string;
            /** @description `hints` says what may be wrong with the question. */
            hints?: string[];
            /** @description `inNamespaces` counts the subjects that RoleBindings allow it in a namespace, when no namespace was named. */
            inNamespaces: number;
            /** @description `known` is false when any number of unknown bindings may exist. */
            known: boolean;
            /** @description `missing` names what is not known and could add to the answer. */
            missing: string[];
            /** @description name of the object */
            name: string;
            /** @description "" is the whole cluster, or none */
            namespace: string;
            /** @description of a request about no resource */
            path: string;
            /** @description plural name */
            resource: string;
            /** @description a subject stands in it once for each scope */
            subjects: components["schemas"]["Holder"][];
            /** @description "" for none */
            subresource: string;
            /** @description verb of the request */
            verb: string;
        };
        /** @description everything about the requests of an audit ID. */
        WhyAnswer: {
            /** @description `like` are requests whose audit IDs begin with the one asked about, where none has it: one of each ID, six at most. */
            like?: components["schemas"]["LikeRequest"][];
            /** @description how many */
            requests: components["schemas"]["JudgedRequest"][];
            /** @description `truncated` says that the ID has more requests than one answer holds. */
            truncated?: boolean;
        };
    };
    responses: {
        /** @description the question is wrong; the text says what */
        400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description a token is needed: Authorization: Bearer TOKEN, or as the password of any user */
        401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description the request comes from another site (Origin, Sec-Fetch-Site), or is an action and did not come by the socket */
        403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description nothing is stored under that name, or there is no such path */
        404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description the listener is not known under that Host; add it with --ui-hosts */
        421: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description the caller has as many questions waiting as one may; ask again when one is answered (Retry-After) */
        429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description the store failed; the server's log says why */
        500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description too many questions wait, or this one's turn did not come within 30 s; try again (Retry-After) */
        503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
        /** @description the store took longer than 30 s; ask for a shorter range */
        504: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "text/plain": string;
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "query.Ask": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description name of the question, of those in questions.md */
                question?: string;
                /** @description the question's parameters, a JSON object of texts */
                values?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AskAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Can": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description a user name, system:serviceaccount:NAMESPACE:NAME, group:NAME, or user:NAME */
                subject?: string;
                /** @description groups the subject is in, separated by commas, one with a comma in it quoted as in CSV (default: those its requests carried) */
                group?: string;
                /** @description verb of the request, where one is asked about */
                verb?: string;
                /** @description resource of the request, as of who-can */
                resource?: string;
                /** @description leave out the other namespaces; that of the request */
                namespace?: string;
                /** @description name of the object of the request */
                name?: string;
                /** @description path of the request, where it is about no resource */
                path?: string;
                /** @description moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known) */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CanAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Changes": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description the moment before, such as 2026-11-20T11:36:00Z */
                from: string;
                /** @description the moment after (default: the newest that is known) */
                to?: string;
                /** @description only what changed for this subject, with all its groups: written as of can */
                subject?: string;
                /** @description groups the subject is in, as of can (default: those its requests carried) */
                group?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangesAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Classes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClassesAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Clusters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClustersAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Complete": {
        parameters: {
            query: {
                /** @description what the text is the beginning of; a rule is one of detections */
                kind: "cluster" | "subject" | "group" | "namespace" | "resource" | "verb" | "name" | "path" | "userAgent" | "rule" | "role" | "binding" | "class";
                /** @description cluster the question is about; clusters, rules and classes need none */
                cluster?: string;
                /** @description the text (default: all values) */
                prefix?: string;
                /** @description of a name: the resource of the object, without group */
                resource?: string;
                /** @description of a name: the namespace of the object (default: any) */
                namespace?: string;
                /** @description most values */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompleteAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Completeness": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description events at or after this time, such as 2026-11-20T11:36:00Z (default: a day before to) */
                from?: string;
                /** @description events before this time (default: now, less settle) */
                to?: string;
                /** @description how long events may be under way (default 150s: a batch's wait and its retries) */
                settle?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompletenessReport"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "doctor.Connection": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorConnectionAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Dangers": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description by the policy of this time, such as 2026-11-20T11:36:00Z (default: the newest that is known) */
                at?: string;
                /** @description count uses at or after this time; widened to whole days */
                from?: string;
                /** @description count uses before this time; widened to whole days */
                to?: string;
                /** @description only this danger, by its id */
                danger?: string;
                /** @description only what was never used */
                unused?: boolean;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description most holders of an answer */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DangersAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    doctor: {
        parameters: {
            query?: {
                /** @description only this cluster, beside the installation */
                cluster?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Drained": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainedAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Drift": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time, such as 2026-11-20T11:36:00Z */
                from?: string;
                /** @description requests before this time */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriftAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Escalations": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description subject to ask about alone, written as of can */
                subject?: string;
                /** @description groups the subject is in, as of can (default: those its requests carried) */
                group?: string;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known) */
                at?: string;
                /** @description list at most so many paths */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EscalationsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Events": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time */
                from?: string;
                /** @description requests before this time */
                to?: string;
                /** @description whom the request was authorized as (called user before) */
                subject?: string;
                /** @description verb of the request */
                verb?: string;
                /** @description resource of the request, without group */
                resource?: string;
                /** @description decision the apiserver recorded */
                decision?: "allow" | "forbid" | "none";
                /** @description outcome of the verdict */
                outcome?: "match" | "drift" | "ambiguous" | "indeterminate" | "not_judged";
                /** @description class of the verdict, one of those of classes */
                class?: string;
                /** @description more of them, as KEY=VALUE, KEY!=VALUE, KEY^=BEGIN or KEY!^=BEGIN: the values of one key are alternatives, different keys restrict each other, what ! names is left out in any case; keys are subject, user (who authenticated), impersonated, group, verb, apiGroup, resource, subresource, namespace, name, path (without query), code, refused and system (yes or no: whether it was refused, by whomever; whether its subject is Kubernetes' own), decision, replayed, outcome, class, authorizer, apiserver, userAgent, sourceIP, credential, auditID and rule (of detections, that a request counts for: a finding may take several); an empty value is none */
                where?: string;
                /** @description go on behind this place in the list: older of the answer before */
                before?: string;
                /** @description most requests of an answer */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.ExplainDeny": {
        parameters: {
            query: {
                /** @description audit ID of the requests */
                auditID: string;
                /** @description look in this cluster only: audit IDs are chosen by clients and may be reused */
                cluster?: string;
                /** @description by the policy of this time (RFC 3339), instead of the request's own */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainDenyAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Facets": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time */
                from?: string;
                /** @description requests before this time */
                to?: string;
                /** @description whom the request was authorized as (called user before) */
                subject?: string;
                /** @description verb of the request */
                verb?: string;
                /** @description resource of the request, without group */
                resource?: string;
                /** @description decision the apiserver recorded */
                decision?: "allow" | "forbid" | "none";
                /** @description outcome of the verdict */
                outcome?: "match" | "drift" | "ambiguous" | "indeterminate" | "not_judged";
                /** @description class of the verdict, one of those of classes */
                class?: string;
                /** @description more of them, as KEY=VALUE, KEY!=VALUE, KEY^=BEGIN or KEY!^=BEGIN: the values of one key are alternatives, different keys restrict each other, what ! names is left out in any case; keys are subject, user (who authenticated), impersonated, group, verb, apiGroup, resource, subresource, namespace, name, path (without query), code, refused and system (yes or no: whether it was refused, by whomever; whether its subject is Kubernetes' own), decision, replayed, outcome, class, authorizer, apiserver, userAgent, sourceIP, credential, auditID and rule (of detections, that a request counts for: a finding may take several); an empty value is none */
                where?: string;
                /** @description keys to count by, as of where but for path, auditID and credential (default: subject, verb, resource, namespace, decision, outcome, code and userAgent) */
                keys?: string;
                /** @description most values of a key */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FacetsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Findings": {
        parameters: {
            query?: {
                /** @description findings of this cluster (default: all) */
                cluster?: string;
                /** @description findings with requests at or after this time, such as 2026-11-20T11:36:00Z */
                from?: string;
                /** @description findings with requests before this time */
                to?: string;
                /** @description findings as they stood at this time: those whose first request had been received */
                at?: string;
                /** @description findings of this rule */
                rule?: string;
                /** @description findings of this severity or above */
                severity?: "info" | "low" | "medium" | "high" | "critical";
                /** @description findings on this user */
                subject?: string;
                /** @description most findings of an answer */
                limit?: number;
                /** @description go on behind this place in the list: older of the answer before */
                before?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FindingsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.FirstUses": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description first at or after this time, such as 2026-11-20T11:36:00Z */
                from: string;
                /** @description first before this time (default: the newest that is stored) */
                to?: string;
                /** @description only what this subject did */
                subject?: string;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description most of each list */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FirstUsesAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Histogram": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time */
                from?: string;
                /** @description requests before this time */
                to?: string;
                /** @description whom the request was authorized as (called user before) */
                subject?: string;
                /** @description verb of the request */
                verb?: string;
                /** @description resource of the request, without group */
                resource?: string;
                /** @description decision the apiserver recorded */
                decision?: "allow" | "forbid" | "none";
                /** @description outcome of the verdict */
                outcome?: "match" | "drift" | "ambiguous" | "indeterminate" | "not_judged";
                /** @description class of the verdict, one of those of classes */
                class?: string;
                /** @description more of them, as KEY=VALUE, KEY!=VALUE, KEY^=BEGIN or KEY!^=BEGIN: the values of one key are alternatives, different keys restrict each other, what ! names is left out in any case; keys are subject, user (who authenticated), impersonated, group, verb, apiGroup, resource, subresource, namespace, name, path (without query), code, refused and system (yes or no: whether it was refused, by whomever; whether its subject is Kubernetes' own), decision, replayed, outcome, class, authorizer, apiserver, userAgent, sourceIP, credential, auditID and rule (of detections, that a request counts for: a finding may take several); an empty value is none */
                where?: string;
                /** @description key to split the counts by, as of facets */
                split?: string;
                /** @description values of the key that are counted by themselves */
                top?: number;
                /** @description most steps */
                steps?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistogramAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Hygiene": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known) */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HygieneAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Lineage": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description JTI=ID of a token, X509SHA256=FINGERPRINT of a certificate, or Secret=NAMESPACE/NAME */
                credential?: string;
                /** @description user name whose credentials are asked about */
                subject?: string;
                /** @description uses at or after this time, such as 2026-11-20T11:36:00Z */
                from?: string;
                /** @description uses before this time */
                to?: string;
                /** @description most credentials of a subject */
                limit?: number;
                /** @description of a subject: count its own requests alone, and leave out where its credentials were used from */
                brief?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineageAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Overview": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time */
                from: string;
                /** @description requests before this time */
                to: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OverviewAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.PolicyChanges": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description writes at or after this time, such as 2026-11-20T11:36:00Z */
                from?: string;
                /** @description writes before this time */
                to?: string;
                /** @description audit ID of one write: say what it changed, what came of it, and how to take it back */
                id?: string;
                /** @description most writes of an answer */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PolicyChangesAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.QueryLog": {
        parameters: {
            query?: {
                /** @description questions before this time */
                before?: string;
                /** @description most lines of an answer */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueryLogAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Refusals": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description requests at or after this time, such as 2026-11-20T11:36:00Z */
                from?: string;
                /** @description requests before this time */
                to?: string;
                /** @description only requests of this subject */
                subject?: string;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description most refusals of an answer, and most changes */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RefusalsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.RejudgeJobs": {
        parameters: {
            query?: {
                /** @description jobs of this cluster */
                cluster?: string;
                /** @description the job of this ID */
                id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejudgeJobsAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Rejudge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description cluster whose requests are judged again */
                    cluster: string;
                    /** @description count what would change, and change nothing */
                    dryRun?: boolean;
                    /**
                     * Format: date-time
                     * @description requests from this time on
                     */
                    from: string;
                    /**
                     * Format: date-time
                     * @description requests before this time (default: now)
                     */
                    to?: string;
                    /** @description only requests with key=value, keys user, verb, resource, namespace, class and verdict: values of one key are alternatives, different keys restrict each other */
                    where?: string[];
                    /** @description why it is done, for the record of who asked what */
                    why?: string;
                };
            };
        };
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RejudgeJob"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulesAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatusAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Subject": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description user name, as requests are authorized (called user before) */
                subject: string;
                /** @description requests at or after this time; widened to whole days */
                from?: string;
                /** @description requests before this time; widened to whole days */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Doings"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Suggest": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description user names as audit events have them, separated by line breaks; * stands for any letters, ? for one */
                subject?: string;
                /** @description every subject */
                all?: boolean;
                /** @description only requests from this time on (RFC 3339), in whole minutes */
                from?: string;
                /** @description only requests before this time (RFC 3339), in whole minutes */
                to?: string;
                /** @description also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-* */
                includeSystem?: boolean;
                /** @description also subjects that hold bindings and were never seen: suggest to remove all of it */
                includeUnseen?: boolean;
                /** @description a group: its roles narrowed to what anybody in it used that they allow */
                group?: string;
                /** @description a role, narrowed to what anybody used that it allows: KIND/NAME, KIND/NAMESPACE/NAME, or a name that no other role has */
                role?: string;
                /** @description a binding, its role narrowed to what anybody used that it allows: named as a role is */
                binding?: string;
                /** @description the service accounts of a namespace; * stands for any letters, ? for one */
                namespace?: string;
                /** @description of all subjects, with the objects of every change; of named ones they are always there */
                changes?: boolean;
                /** @description roles of each subject's own that hold exactly what it used, instead of the roles it holds narrowed to that */
                strict?: boolean;
                /** @description narrowed roles without the verbs that go with those used, such as watch with list */
                noAddedVerbs?: boolean;
                /** @description of all subjects: the answer may be one that was made an hour ago at most, and is kept for the next such question */
                kept?: boolean;
                /** @description only subjects of which it is learned what they need */
                learned?: boolean;
                /** @description also ask what is suggested of the first 50, 70 and 90 % of the range about the rest */
                backtest?: boolean;
                /** @description what may be written as *: none, or verbs (strict, then), where no refusal on record speaks against it */
                wildcards?: "none" | "verbs";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SuggestAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.WhatIf": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description cluster the question is about */
                    cluster: string;
                    /** @description objects that the draft deletes: KIND/NAME, or KIND/NAMESPACE/NAME */
                    delete?: string[];
                    /** @description Roles, ClusterRoles, RoleBindings and ClusterRoleBindings as YAML or JSON, by the names of their files */
                    draft?: {
                        [key: string]: string;
                    };
                    /**
                     * Format: date-time
                     * @description only requests from this time on (RFC 3339), in whole minutes
                     */
                    from?: string;
                    /** @description only requests of these users, named as audit events have them */
                    subject?: string[];
                    /**
                     * Format: date-time
                     * @description only requests before this time (RFC 3339), in whole minutes
                     */
                    to?: string;
                };
            };
        };
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhatIfAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.WhoCan": {
        parameters: {
            query: {
                /** @description cluster the question is about */
                cluster: string;
                /** @description verb of the request */
                verb: string;
                /** @description RESOURCE, RESOURCE.GROUP, and with a subresource RESOURCE[.GROUP]/SUBRESOURCE or RESOURCE/SUBRESOURCE.GROUP; without a group it is that of Kubernetes' own resource of the name, or the one in which rules name it; a dot at the end is always the core group; short names, singulars and kinds are read as kubectl reads them */
                resource?: string;
                /** @description count what is granted in this namespace as well */
                namespace?: string;
                /** @description count what is granted in any namespace, and say where */
                allNamespaces?: boolean;
                /** @description name of the object; without it only rules for every name count */
                name?: string;
                /** @description path of the request, where it is about no resource */
                path?: string;
                /** @description moment the question is about, such as 2026-11-20T11:36:00Z (default: the newest that is known) */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhoCanAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    "query.Why": {
        parameters: {
            query: {
                /** @description audit ID of the requests; where none has it, those that begin with it are named */
                auditID: string;
                /** @description look in this cluster only: audit IDs are chosen by clients and may be reused */
                cluster?: string;
                /** @description decide the request also by the policy of this time (RFC 3339) */
                at?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the answer */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhyAnswer"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            421: components["responses"]["421"];
            429: components["responses"]["429"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
}
