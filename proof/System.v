(** * What the semantics needs to know about tables

    [Tables] is what every semantics needs: tables, transformations that are
    stable, splitters and mechanisms that draw.  What the mechanisms promise of
    privacy comes on top of it: [System] adds pure privacy, which [Featherweight]
    and [General] need; [Books] asks for what each book's notion needs.
    [Instance] and [Concentrated] keep all of it, with bags, the registry of
    [Plans] and the mechanisms that run; nothing stays assumed. *)

Require Import Reals Lra Lia List Arith.
Require Import Fpinq.Probability.
Import ListNotations.
Open Scope R_scope.

(** f i + ... + f (i + n - 1) *)
Fixpoint sum_from (i n : nat) (f : nat -> nat) : nat :=
  match n with O => O | S n => (f i + sum_from (S i) n f)%nat end.

Lemma sum_from_ext n f g : (forall i, f i = g i) -> forall i, sum_from i n f = sum_from i n g.
Proof. intros H. induction n as [|n IH]; intros i; simpl; [reflexivity|]. rewrite H, IH. reflexivity. Qed.

Record Tables := {
  table : Type;

  (* a path metric *)
  distance : table -> table -> nat;
  distance_refl : forall T, distance T T = 0%nat;
  distance_triangle : forall T U V, (distance T V <= distance T U + distance U V)%nat;
  distance_path : forall n T V, distance T V = S n -> exists U, distance T U = 1%nat /\ distance U V = n;

  (* transformations and their stability; [None] is infinity *)
  transformation : Type;
  apply : transformation -> list table -> table;
  stability : transformation -> list (option nat);
  stability_sound : forall F before after c, nth_error (stability F) (length before) = Some c ->
    match c with
    | Some c => forall T U, (distance (apply F (before ++ T :: after)) (apply F (before ++ U :: after)) <=
      c * distance T U)%nat
    | None => forall T U, distance T U = 0%nat ->
      distance (apply F (before ++ T :: after)) (apply F (before ++ U :: after)) = 0%nat
    end;

  (* splitting a table: the distances of the parts sum to at most the whole *)
  splitter : Type;
  part : splitter -> nat -> table -> table;
  part_stable : forall f n T U, (sum_from 0 n (fun i => distance (part f i T) (part f i U)) <= distance T U)%nat;

  (* mechanisms: [mass q e T v] = Pr[q(e, T) = v] *)
  mechanism : Type;
  answer : Type;
  answer_dec : forall v w : answer, {v = w} + {v <> w};
  mass : mechanism -> R -> table -> answer -> R;
  mass_distribution : forall q e T, 0 < e -> distribution (mass q e T);
  mass_same : forall q e T U v, distance T U = 0%nat -> mass q e T v = mass q e U v }.

(** Every mechanism is private on neighbours, at the e that it runs at. *)
Definition private (S : Tables) : Prop := forall q e T U v, 0 < e -> distance S T U = 1%nat ->
  mass S q e T v <= mass S q e U v * exp e.

Record System := { tables :> Tables; mass_private : private tables }.

(** ** Stability in all arguments at once (Lemma 1 of the paper) *)

(** The sum of c_i * s_i, where infinity times 0 is 0.  [None] when it is
    infinite, or when there are not as many constants as arguments. *)
Definition times (c : option nat) (s : nat) : option nat :=
  match c with Some c => Some (c * s)%nat | None => if Nat.eqb s 0 then Some O else None end.

Fixpoint scale (cs : list (option nat)) (ss : list nat) : option nat :=
  match cs, ss with
  | [], [] => Some O
  | c :: cs, s :: ss =>
      match times c s, scale cs ss with Some a, Some b => Some (a + b)%nat | _, _ => None end
  | _, _ => None
  end.

(** The figure of the paper: A is the input; B := F_2(A), C := F_3(A),
    D := F_5(B), C is split into E and F, G := F_{1,4}(D, E). *)
Example figure : exists b c d e g,
  scale [Some 2%nat] [1%nat] = Some b /\ scale [Some 3%nat] [1%nat] = Some c /\ scale [Some 5%nat] [b] = Some d /\
  scale [Some 1%nat] [c] = Some e /\ scale [Some 1%nat; Some 4%nat] [d; e] = Some g /\
  (b, c, d, e, g) = (2, 3, 10, 3, 22)%nat.
Proof. do 5 eexists. repeat split. Qed.

Section Facts.
  Variable S : Tables.
  Notation distance := (distance S).
  Notation mass := (mass S).

  Fixpoint distances (Ts Us : list (table S)) : list nat :=
    match Ts, Us with T :: Ts, U :: Us => distance T U :: distances Ts Us | _, _ => [] end.

  Lemma lemma1_from F : forall Ts Us before cs0 cs s, stability S F = cs0 ++ cs -> length before = length cs0 ->
    length Ts = length Us -> scale cs (distances Ts Us) = Some s ->
    (distance (apply S F (before ++ Ts)) (apply S F (before ++ Us)) <= s)%nat.
  Proof.
    induction Ts as [|T Ts IH]; intros [|U Us] before cs0 [|c cs] s HF Hl HT Hs; simpl in *; try discriminate.
    - rewrite distance_refl. lia.
    - destruct (times c (distance T U)) as [a|] eqn:Ha; [|discriminate].
      destruct (scale cs (distances Ts Us)) as [b|] eqn:Hb; [|discriminate]. injection Hs as <-.
      eapply Nat.le_trans; [apply (distance_triangle S _ (apply S F (before ++ U :: Ts)))|].
      apply Nat.add_le_mono.
      + pose proof (stability_sound S F before Ts c) as H. rewrite HF, Hl, nth_error_app2, Nat.sub_diag in H by auto.
        specialize (H eq_refl). destruct c as [c|]; simpl in Ha.
        * injection Ha as <-. apply H.
        * destruct (Nat.eqb_spec (distance T U) 0) as [E|]; [|discriminate]. injection Ha as <-. rewrite (H T U E).
          auto.
      + specialize (IH Us (before ++ [U]) (cs0 ++ [c]) cs b). rewrite <- !app_assoc in IH. simpl in IH.
        apply IH; auto. rewrite !app_length. simpl. lia.
  Qed.

  Lemma lemma1 F Ts Us s : length Ts = length Us -> scale (stability S F) (distances Ts Us) = Some s ->
    (distance (apply S F Ts) (apply S F Us) <= s)%nat.
  Proof. intros. apply (lemma1_from F Ts Us [] [] (stability S F)); auto. Qed.

  (** ** Parallel queries *)

  (** The queries Qs run side by side, the i-th on the i-th part, each at e. *)
  Fixpoint parallel (f : splitter S) (e : R) (T : table S) (i : nat) (Qs : list (mechanism S))
    (vs : list (answer S)) : R :=
    match Qs, vs with
    | [], [] => 1
    | q :: Qs, v :: vs => mass q e (part S f i T) v * parallel f e T (Datatypes.S i) Qs vs
    | _, _ => 0
    end.

  Lemma parallel_distribution f e T : 0 < e -> forall Qs i, distribution (parallel f e T i Qs).
  Proof.
    intros He. induction Qs as [|q Qs IH]; intros i.
    - apply (distribution_ext ended); [intros []; reflexivity|apply ended_distribution].
    - eapply distribution_ext; [|apply (sequence_distribution (answer_dec S) (mass q e (part S f i T))
        (fun _ => parallel f e T (Datatypes.S i) Qs))].
      + intros []; reflexivity.
      + apply mass_distribution, He.
      + intros _. apply IH.
  Qed.

  Lemma parallel_nonneg f e T Qs vs i : 0 < e -> 0 <= parallel f e T i Qs vs.
  Proof. intros He. apply parallel_distribution, He. Qed.

  (** ** Privacy at any distance, and of parallel queries *)

  Hypothesis promise : private S.

  Lemma group_privacy q e v : 0 < e -> forall n T U, distance T U = n ->
    mass q e T v <= mass q e U v * exp (e * INR n).
  Proof.
    intros He. induction n as [|n IH]; intros T U Hd.
    - rewrite (mass_same S q e T U v Hd). simpl. rewrite Rmult_0_r, exp_0. lra.
    - destruct (distance_path S n T U Hd) as (V & H1 & H2).
      eapply Rle_trans; [apply (promise q e T V v He H1)|].
      rewrite S_INR. replace (e * (INR n + 1)) with (e * INR n + e) by ring.
      rewrite exp_plus, <- Rmult_assoc. apply Rmult_le_compat_r; [left; apply exp_pos|]. apply IH, H2.
  Qed.

  Lemma parallel_from f e T U : 0 < e -> forall Qs vs i,
    parallel f e T i Qs vs <=
    parallel f e U i Qs vs * exp (e * INR (sum_from i (length Qs) (fun j => distance (part S f j T) (part S f j U)))).
  Proof.
    intros He. induction Qs as [|q Qs IH]; intros [|v vs] i; simpl; try (rewrite ?Rmult_0_r, ?Rmult_0_l, ?exp_0; lra).
    rewrite plus_INR, Rmult_plus_distr_l, exp_plus.
    set (d := distance (part S f i T) (part S f i U)). set (rest := INR (sum_from _ _ _)).
    replace (mass q e (part S f i U) v * parallel f e U (Datatypes.S i) Qs vs * (exp (e * INR d) * exp (e * rest)))
      with ((mass q e (part S f i U) v * exp (e * INR d)) * (parallel f e U (Datatypes.S i)
        Qs vs * exp (e * rest))) by ring.
    apply Rmult_le_compat; auto using parallel_nonneg.
    - apply mass_distribution, He.
    - apply group_privacy; auto.
    - apply IH.
  Qed.

  (** A parallel query costs no more than a single one. *)
  Lemma parallel_private f e T U Qs vs : 0 < e ->
    parallel f e T 0 Qs vs <= parallel f e U 0 Qs vs * exp (e * INR (distance T U)).
  Proof.
    intros He. eapply Rle_trans; [apply parallel_from, He|].
    apply Rmult_le_compat_l; [apply parallel_nonneg, He|]. apply exp_mono, Rmult_le_compat_l; [lra|].
    apply le_INR, part_stable.
  Qed.
End Facts.
