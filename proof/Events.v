(** * Any event, any program

    [General.joint_dp] speaks of one trace.  Here it is lifted

    - to every event: any set of traces, finite or not, described by any
      predicate.  Its probability is the least upper bound of its finite sums;
    - to programs that toss coins.  Before each action a program may draw from
      any distribution of its own, which may depend on all that it was told.
      The event may then speak of the coins as well as of what was shown. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.General.
Import ListNotations.
Open Scope R_scope.

(** ** Events *)

Definition chance_of {A} (f : A -> R) (event : A -> Prop) (p : R) : Prop :=
  is_lub (fun r => exists l, NoDup l /\ (forall x, In x l -> event x) /\ r = sum f l) p.

(** Every event of a distribution has a probability, and only one. *)
Lemma chance_exists {A} (f : A -> R) event : (forall l, NoDup l -> sum f l <= 1) -> exists p, chance_of f event p.
Proof.
  intros H. destruct (completeness (fun r => exists l, NoDup l /\ (forall x, In x l -> event x) /\ r = sum f l)) as [p K].
  - exists 1. intros r (l & N & _ & ->). auto.
  - exists 0, []. repeat split; [constructor|intros x []].
  - exists p. exact K.
Qed.

Lemma chance_unique {A} (f : A -> R) event p q : chance_of f event p -> chance_of f event q -> p = q.
Proof. intros [P P'] [Q Q']. apply Rle_antisym; auto. Qed.

(** The certain event has probability 1. *)
Lemma chance_whole {A} (f : A -> R) : distribution f -> chance_of f (fun _ => True) 1.
Proof.
  intros [P U L]. split.
  - intros r (l & N & _ & ->). auto.
  - intros b H. apply Rnot_lt_le. intros K. destruct (L ((1 - b) / 2)) as (l & N & S); [lra|].
    assert (sum f l <= b) by (apply H; exists l; auto). lra.
Qed.

(** What holds of each outcome holds of every event. *)
Lemma chance_private {A} (f g : A -> R) event c p q : 0 <= c -> (forall x, f x <= g x * c) ->
  chance_of f event p -> chance_of g event q -> p <= q * c.
Proof.
  intros Hc H [_ Hp] [Hq _]. apply Hp. intros r (l & N & Hl & ->). apply Rle_trans with (sum g l * c).
  - rewrite Rmult_comm, <- sum_scale. apply sum_le. intros x _. rewrite Rmult_comm. apply H.
  - apply Rmult_le_compat_r; [exact Hc|]. apply Hq. exists l. auto.
Qed.

(** What is drawn beforehand, from any seeds with any weights, changes nothing of
    an (ε, δ). *)
Section Mixture.
  Context {seed A : Type} (dec : forall s s' : seed, {s = s'} + {s <> s'}).
  Variables (weight : seed -> R) (P Q : seed -> A -> R) (e delta : R).
  Hypothesis weight_nonneg : forall s, 0 <= weight s.
  Hypothesis weight_one : forall l, NoDup l -> sum weight l <= 1.
  Hypothesis delta_nonneg : 0 <= delta.
  Hypothesis close_each : forall s l, NoDup l -> sum (P s) l <= exp e * sum (Q s) l + delta.

  Let drawn (f : seed -> A -> R) (x : seed * A) : R := weight (fst x) * f (fst x) (snd x).
  Let those (s : seed) (l : list (seed * A)) : list A := flat_map (fun x => if dec (fst x) s then [snd x] else []) l.

  Lemma those_nodup s l : NoDup l -> NoDup (those s l).
  Proof.
    induction 1 as [|[r a] l H N IH]; simpl; [constructor|]. destruct (dec r s) as [->|]; simpl; auto. constructor; auto.
    intros K. apply in_flat_map in K. destruct K as ([r' a'] & Hin & K). simpl in K. destruct (dec r' s) as [->|]; [|contradiction].
    destruct K as [->|[]]. contradiction.
  Qed.

  Lemma drawn_sum f l heads : NoDup heads -> (forall x, In x l -> In (fst x) heads) ->
    sum (drawn f) l = sum (fun s => weight s * sum (f s) (those s l)) heads.
  Proof.
    intros N. induction l as [|[r a] l IH]; intros H.
    - simpl. symmetry. apply sum_zero. intros. simpl. ring.
    - cbn [sum]. rewrite IH by (intros x Hx; apply H; right; exact Hx).
      rewrite (sum_ext (fun s => weight s * sum (f s) (those s ((r, a) :: l)))
        (fun s => (if dec r s then weight s * f s a else 0) + weight s * sum (f s) (those s l))).
      + rewrite sum_plus, (sum_indicator dec (fun s => weight s * f s a) r heads N (H (r, a) (or_introl eq_refl))). reflexivity.
      + intros s _. unfold those. simpl. destruct (dec r s); simpl; ring.
  Qed.

  Lemma mixture_close l : NoDup l -> sum (drawn P) l <= exp e * sum (drawn Q) l + delta.
  Proof.
    intros N. set (heads := nodup dec (map fst l)). assert (Hn : NoDup heads) by apply NoDup_nodup.
    assert (H : forall x, In x l -> In (fst x) heads) by (intros x Hx; apply nodup_In, in_map, Hx).
    rewrite (drawn_sum P l heads Hn H), (drawn_sum Q l heads Hn H).
    apply Rle_trans with (sum (fun s => exp e * (weight s * sum (Q s) (those s l)) + delta * weight s) heads).
    - apply sum_le. intros s _. pose proof (close_each s (those s l) (those_nodup s l N)) as K.
      pose proof (Rmult_le_compat_l _ _ _ (weight_nonneg s) K). lra.
    - rewrite sum_plus, !sum_scale. apply Rplus_le_compat_l. rewrite <- (Rmult_1_r delta) at 2.
      apply Rmult_le_compat_l; auto.
  Qed.

  Theorem chance_mixture event u v : chance_of (fun x : seed * A => weight (fst x) * P (fst x) (snd x)) event u ->
    chance_of (fun x : seed * A => weight (fst x) * Q (fst x) (snd x)) event v -> u <= exp e * v + delta.
  Proof.
    intros [_ Hu] [Hv _]. apply Hu. intros r (l & N & Hl & ->). eapply Rle_trans; [apply (mixture_close l N)|].
    apply Rplus_le_compat_r, Rmult_le_compat_l; [left; apply exp_pos|]. apply Hv. exists l. auto.
  Qed.
End Mixture.

Section Events.
  Variable S : System.
  Variables (roots : nat) (budget : vector) (empty : table S).
  Hypothesis budget_nonneg : forall x, (x < roots)%nat -> 0 <= budget x.
  Notation Observation := (Observation S).
  Notation init := (init S roots empty).
  Notation loss D D' := (exp (dot roots budget (root_distances S D D'))).

  Theorem event_dp (client : Client S) start D D' n (event : list Observation -> Prop) p q :
    chance_of (probability S roots budget client n start (init D)) event p ->
    chance_of (probability S roots budget client n start (init D')) event q -> p <= q * loss D D'.
  Proof.
    apply chance_private; [left; apply exp_pos|]. intros t. apply (joint_dp S roots budget client (mass_private S) empty budget_nonneg).
  Qed.

  (** ** Coins *)

  Record RandomClient := {
    thoughts : Type;
    coin : Type;
    odds : thoughts -> coin -> R;
    odds_nonneg : forall p c, 0 <= odds p c;
    acts : thoughts -> coin -> Action S;
    hears : thoughts -> coin -> Observation -> thoughts }.
  Variable client : RandomClient.

  (** What happened: at each step the coin, and what was shown. *)
  Definition story := list (coin client * Observation).

  Fixpoint likelihood (n : nat) (p : thoughts client) (s : State S) (t : story) : R :=
    match n, t with
    | O, [] => 1
    | Datatypes.S n, (c, o) :: t =>
        let (r, s') := step S roots budget s (acts client p c) in
        odds client p c * chances S r o * likelihood n (hears client p c o) s' t
    | _, _ => 0
    end.

  (** With the coins known beforehand it is a deterministic program; the odds of
      the coins are the same whatever the data. *)
  Definition settled : Client S :=
    {| program := thoughts client * list (coin client);
       does := fun '(p, cs) => match cs with [] => Silent S | c :: _ => acts client p c end;
       told := fun '(p, cs) o => match cs with [] => (p, []) | c :: cs => (hears client p c o, cs) end |}.

  Fixpoint luck (p : thoughts client) (t : story) : R :=
    match t with [] => 1 | (c, o) :: t => odds client p c * luck (hears client p c o) t end.

  Lemma luck_nonneg t : forall p, 0 <= luck p t.
  Proof.
    induction t as [|[c o] t IH]; intros p; simpl; [lra|]. apply Rmult_le_pos; [apply odds_nonneg|apply IH].
  Qed.

  Lemma likelihood_settled n : forall t p s, likelihood n p s t =
    luck p t * probability S roots budget settled n (p, map fst t) s (map snd t).
  Proof.
    induction n as [|n IH]; intros [|[c o] t] p s; cbn [likelihood luck probability map fst snd]; try ring.
    unfold reply, next. cbn [does told settled]. destruct (step S roots budget s (acts client p c)) as [r s'].
    cbn [fst snd]. rewrite IH. ring.
  Qed.

  Theorem story_dp D D' n p t : likelihood n p (init D) t <= likelihood n p (init D') t * loss D D'.
  Proof.
    rewrite !likelihood_settled, Rmult_assoc. apply Rmult_le_compat_l; [apply luck_nonneg|].
    apply (joint_dp S roots budget settled (mass_private S) empty budget_nonneg).
  Qed.

  (** Any program that tosses coins, any event of coins and observations. *)
  Theorem random_dp D D' n p (event : story -> Prop) u v :
    chance_of (likelihood n p (init D)) event u -> chance_of (likelihood n p (init D')) event v -> u <= v * loss D D'.
  Proof. apply chance_private; [left; apply exp_pos|]. intros t. apply story_dp. Qed.

  (** If the coins are distributions, so are the stories: every event has a
      probability. *)
  Section Stories.
    Variable coin_dec : forall c c' : coin client, {c = c'} + {c <> c'}.
    Hypothesis odds_distribution : forall p, distribution (odds client p).

    Lemma pair_sum {A B} (decA : forall x y : A, {x = y} + {x <> y}) (f : A -> R) (g : A -> B -> R) l :
      distribution f -> (forall x, distribution (g x)) -> NoDup l -> sum (fun '(x, y) => f x * g x y) l <= 1.
    Proof.
      intros Hf Hg N. set (heads := nodup decA (map fst l)).
      pose (with_head := fun x => flat_map (fun '(y, z) => if decA y x then [z] else @nil B) l).
      assert (E : sum (fun '(x, y) => f x * g x y) l = sum (fun x => f x * sum (g x) (with_head x)) heads).
      { assert (K : forall hs k, NoDup hs -> (forall x y, In (x, y) k -> In x hs) ->
          sum (fun '(x, y) => f x * g x y) k =
          sum (fun x => f x * sum (g x) (flat_map (fun '(y, z) => if decA y x then [z] else []) k)) hs).
        { intros hs k Nh. induction k as [|[a b] k IH]; intros Hin.
          - simpl. symmetry. apply sum_zero. intros. ring.
          - cbn [sum]. rewrite IH by (intros; eapply Hin; right; eauto).
            rewrite (sum_ext (fun x => f x * sum (g x) (flat_map _ ((a, b) :: k)))
              (fun x => (if decA a x then f x * g x b else 0) +
                f x * sum (g x) (flat_map (fun '(y, z) => if decA y x then [z] else []) k))).
            + rewrite sum_plus, (sum_indicator decA (fun x => f x * g x b) a); auto. apply (Hin a b). left. reflexivity.
            + intros x _. cbn [flat_map]. rewrite sum_app. destruct (decA a x); simpl; ring. }
        apply K; [apply NoDup_nodup|]. intros x y H. apply nodup_In, in_map_iff. exists (x, y). auto. }
      rewrite E. eapply Rle_trans; [|apply (at_most_one f Hf heads), NoDup_nodup]. apply sum_le. intros x _.
      rewrite <- (Rmult_1_r (f x)) at 2. apply Rmult_le_compat_l; [apply (nonnegative f Hf)|].
      apply (at_most_one _ (Hg x)). unfold with_head. clear -N. induction N as [|[a b] k Hk N IH]; simpl; [constructor|].
      destruct (decA a x) as [->|]; auto. simpl. constructor; auto. rewrite in_flat_map. intros ([y z] & Hin & K).
      destruct (decA y x) as [->|]; [|contradiction]. destruct K as [->|[]]. contradiction.
    Qed.

    Lemma likelihood_nonneg n p s t : 0 <= likelihood n p s t.
    Proof.
      rewrite likelihood_settled. apply Rmult_le_pos; [apply luck_nonneg|apply probability_nonneg].
    Qed.

    Theorem stories_at_most_one n : forall p s l, NoDup l -> sum (likelihood n p s) l <= 1.
    Proof.
      induction n as [|n IH]; intros p s l N.
      - eapply Rle_trans; [|apply (at_most_one (@ended (coin client * Observation)) ended_distribution l N)].
        apply Req_le, sum_ext. intros [|[c o] t] _; reflexivity.
      - set (w := fun c => odds client p c).
        pose (first := fun '(c, o) => odds client p c * chances S (fst (step S roots budget s (acts client p c))) o).
        pose (rest := fun '(c, o) => likelihood n (hears client p c o) (snd (step S roots budget s (acts client p c)))).
        assert (E : forall t, likelihood (Datatypes.S n) p s t = match t with [] => 0 | x :: t => first x * rest x t end).
        { intros [|[c o] t]; [reflexivity|]. cbn [likelihood]. unfold first, rest.
          destruct (step S roots budget s (acts client p c)). reflexivity. }
        rewrite (sum_ext _ _ l (fun t _ => E t)).
        assert (dec : forall x y : coin client * Observation, {x = y} + {x <> y}).
        { decide equality. apply observation_dec. }
        set (heads := nodup dec (flat_map (fun t => match t with [] => [] | x :: _ => [x] end) l)).
        assert (Hn : NoDup heads) by apply NoDup_nodup.
        change (sum (sequence first rest) l <= 1). rewrite (sequence_sum dec first rest l heads Hn).
        2:{ intros x t Hx. apply nodup_In, in_flat_map. exists (x :: t). simpl. auto. }
        eapply Rle_trans with (sum first heads).
        + apply sum_le. intros [c o] _. rewrite <- (Rmult_1_r (first (c, o))) at 2. apply Rmult_le_compat_l.
          * unfold first. apply Rmult_le_pos; [apply odds_nonneg|]. apply (chances_distribution S), step_runnable.
          * apply IH, tails_nodup, N.
        + apply (pair_sum coin_dec (odds client p)
            (fun c => chances S (fst (step S roots budget s (acts client p c))))); auto.
          intros c. apply chances_distribution, step_runnable.
    Qed.

    Theorem story_events n p s event : exists u, chance_of (likelihood n p s) event u.
    Proof. apply chance_exists, stories_at_most_one. Qed.
  End Stories.
End Events.
